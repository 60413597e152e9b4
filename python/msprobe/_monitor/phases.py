"""What a monitor does between its steps, whatever the framework: where it writes, when it ends, a configuration that changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._capture.log import logger
from . import output
from .budget import Budget
from .live import LiveJudge


class Phases:
    """Of a TrainerMon, which hooks a model in `_start` and takes the hooks off in `_remove_hooks`."""

    config: Any
    rank: int
    output_base_dir: str
    step_count: int
    monitoring: bool
    dynamic_enable: bool
    _collected: int
    _config_file: Any
    _board: Any
    _callbacks: list

    def _new_directory(self) -> str:
        """The directory of this rank: that of an earlier run where append_output names one."""
        times = self.config.append_output
        if times:
            found = output.rank_directories(self.output_base_dir, *times)
            if self.rank in found:
                logger.info("monitor: rank %d continues %s", self.rank, found[self.rank])
                return found[self.rank]
            logger.warning("monitor: append_output names no directory of rank %d: a new one is made", self.rank)
        return output.new_directory(self.rank)

    def on_change(self, callback: Callable[[dict], None]) -> None:
        """Calls this when the rule ChangePoint tells a change, at the end of the step.

        Args:
            callback: Gets the event, the object that docs/en/monitor/judge.md describes. What it raises ends the training.
        """
        self._callbacks.append(callback)

    def _new_judge(self, directory: str, anomalies: Any) -> LiveJudge | None:
        """What judges the series while they grow, if the configuration has the rule ChangePoint."""
        config = self.config
        if config.false_alarms is None:
            return None
        judge = LiveJudge(directory, self.rank, config.false_alarms, config.actions, anomalies)
        judge.callbacks = self._callbacks
        return judge

    def _new_budget(self) -> Budget | None:
        """What keeps the limits of the configuration, if it has any."""
        config = self.config
        if not config.budget:
            return None
        activations = config.xy_distribution or config.recording_l2_features or bool(config.health)
        return Budget(config.budget.get("disk"), config.budget.get("slowdown"), config.step_interval, activations)

    def _count_step(self) -> None:
        """Ends the monitoring when collect_times steps are written."""
        self._collected += 1
        if self._collected >= self.config.collect_times:
            logger.info("monitor: %d steps are monitored, as collect_times says", self._collected)
            self._remove_hooks()
            self._board.end()
            if self.dynamic_enable:
                self._config_file.switch_off()

    def _reload(self) -> None:
        """Begins anew where DYNAMIC_MONITOR is set and the configuration has changed."""
        config = self._config_file.change() if self.dynamic_enable else None
        if config is None:
            return
        config.start_step = self.step_count
        config.squash_name = self.config.squash_name
        logger.warning("monitor: the configuration has changed: it holds from step %d on", self.step_count)
        if self.monitoring:
            self._remove_hooks()
        self.config = config
        self._open_board()
        self._start()

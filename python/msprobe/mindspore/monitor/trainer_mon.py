"""TrainerMon for MindSpore: hooks the call of the optimizer, which gets the gradients of all its parameters."""

import atexit
import os
import weakref
from collections.abc import Callable
from typing import Any, Optional

from ..._capture.guard import shielded
from ..._capture.log import logger
from ..._capture.words import say
from ..._monitor import config as configs
from ..._monitor import names, output
from ..._monitor.anomalies import AnomalyLog
from ..._monitor.board import Board
from ..._monitor.budget import Budget
from ..._monitor.dynamic import ConfigFile
from ..._monitor.live import LiveJudge
from ..._monitor.phases import Phases
from .. import cell_hooks, hooks
from ..framework import MindSpore
from .cells import CellWatch
from .checks import FAULTS, check_models, check_optimizer
from .parameters import ParameterWatch

# Keys that have no meaning where gradients are results of functions, or that are for PyTorch.
_LEFT_OUT = (
    "monitor_mbs_grad",
    "recording_l2_features",
    "stack_info",
    "print_struct",
    "input_distribution",
    "loss",
    "learning_rate",
    "health",
)


class TrainerMon(Phases):
    """Writes statistics of gradients, optimizer states, parameters and activations of each monitored step.

    PyNative mode. It never changes a number of the training and never stops it; what fails ends the monitor and is reported.
    """

    def __init__(self, config_file_path: str, process_group: Any = None, params_have_main_grad: bool = True) -> None:
        """Reads the configuration and makes the output directory of this rank.

        Args:
            config_file_path: A JSON file; docs/en/monitor/config.md lists its keys.
            process_group: Ignored.
            params_have_main_grad: Ignored: gradients are those that the optimizer is called with.

        Raises:
            ValueError: The configuration cannot be read, a value is out of range, or the output cannot be written.
            TypeError: A value of the configuration has the wrong type.
        """
        hooks.init()
        self.config = configs.load_config(config_file_path)
        self.rank = MindSpore().rank_of_process() or 0
        self.output_base_dir = output.base_directory()
        self.directory = self._new_directory()
        self.dynamic_enable = os.getenv("DYNAMIC_MONITOR", "False").lower() == "true"
        self.monitoring = False
        self.step_count = 0
        self._collected = 0
        self._micro_batches = 1
        self._model: list = []
        self._optimizer: Any = None
        self._handles: list = []
        self._cells: Optional[CellWatch] = None
        self._parameters: Optional[ParameterWatch] = None
        self._board: Optional[Board] = None
        self._judge: Optional[LiveJudge] = None
        self._budget: Optional[Budget] = None
        self._callbacks: list = []
        self._armed = self._broken = False
        self._config_file = ConfigFile(config_file_path)
        if self.dynamic_enable:
            logger.warning(
                "monitor: DYNAMIC_MONITOR is set: nothing is monitored until %s has dynamic_on true", config_file_path
            )
        else:
            self._open_board()
        atexit.register(shielded(_end_at_exit), weakref.ref(self))

    def _open_board(self) -> None:
        config = self.config
        if config.module_ranks and self.rank not in config.module_ranks:
            return
        ignored = [key for key in _LEFT_OUT if getattr(config, key)]
        ignored += ["laws"] if config.laws.on else []
        if config.cc_distribution.get("enable", False):
            ignored.append("cc_distribution")
        if ignored:
            logger.warning("monitor: %s: not for MindSpore, and left out", ", ".join(ignored))
        if self._board is not None:
            self._board.end()
        anomalies = AnomalyLog(self.output_base_dir, self.rank, 0, [self.rank]) if config.alert_dump else None
        self._board = Board(self.directory, config, self.rank, anomalies)
        self._judge = self._new_judge(self.directory, anomalies)
        if self._judge is not None and config.actions.dump_steps:
            logger.warning("monitor: alert: dump_steps: not for MindSpore, and left out")

    def set_monitor(
        self,
        model: Any,
        optimizer: Any,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Hooks the model and its optimizer.

        Args:
            model: A Cell, or a list of them.
            optimizer: A Cell that is called with the gradients of its parameters.
            grad_acc_steps: Forward passes of an optimizer step.
            tp_group: Ignored.
            dp_group: Ignored.
            start_iteration: The number of the first step.

        Raises:
            TypeError: The model is no Cell, or the optimizer none that has parameters.
            ValueError: The optimizer has no parameter of the model.
        """
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        check_models(models)
        check_optimizer(optimizer)
        self._micro_batches = configs.whole_number(grad_acc_steps, "grad_acc_steps", 1, 1)
        self.step_count = configs.whole_number(start_iteration, "start_iteration", 0, 0)
        if self._optimizer is not None:
            logger.warning("monitor: set_monitor() was called before: the first model is monitored no more")
            self._remove_hooks()
            self._remove_step_hooks()
        self._model, self._optimizer = models, optimizer
        # Before the others: hooks of Cells that were there first see the gradients first.
        self._handles = [
            cell_hooks.before(optimizer, self._before_step),
            cell_hooks.after(optimizer, self._after_step),
        ]
        if not self.dynamic_enable:
            self._start()

    def _start(self) -> None:
        if self._board is None or self.config.collect_times <= 0:
            return
        board, config = self._board, self.config
        board.forget_expectations()
        self._budget = self._new_budget()
        self._parameters = ParameterWatch(config, board, self._model, self._optimizer)
        if self._parameters.is_empty:
            raise ValueError(say("the optimizer has no parameter of the model: give set_monitor() the two that train"))
        if config.xy_distribution:
            self._cells = CellWatch(config, board, self._micro_batches, self._guard)
            self._watch_cells()
        self.monitoring = True
        self._collected = 0
        self._arm()

    def _watch_cells(self) -> None:
        targets = names.targets_of_chunks(self.config, len(self._model))
        found: set = set()
        for chunk, model in enumerate(self._model):
            for path, cell in model.cells_and_names():
                name = names.target_module_name(self.config, targets, path, f"{chunk}:")
                if name and name not in found:
                    found.add(name)
                    self._cells.add(cell, name)
        for target in targets if not self.config.all_xy else ():
            if target not in found:
                self._board.expect("actv", target)
                self._board.why("actv", target, "the model has no Cell of this name")
        logger.info("monitor: %d Cells are monitored", len(found))

    def _arm(self) -> None:
        self._armed = self.monitoring and self.config.is_monitored(self.step_count)
        if self._armed and self._budget is not None:
            self._armed = self._budget.wants()
        if self._cells is not None:
            self._cells.armed = self._armed

    def _guard(self, what: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            what()
        except FAULTS as error:
            self._broken = True
            logger.error("monitor: it ends here, the training goes on: %s: %s", type(error).__name__, error)
            self._remove_hooks()
            if self._board is not None:
                self._board.end("failed")

    def _before_step(self, cell: Any, arguments: Any) -> None:
        if self._armed and not self._broken:
            self._guard(lambda: self._parameters.before(arguments[0] if arguments else ()))

    def _after_step(self, cell: Any, arguments: Any, result: Any) -> None:
        if self._broken:
            return
        if self._armed:
            self._guard(self._finish_step)
        if self._budget is not None and self._budget.ended(self._armed, self._board.written):
            self._leave_out_cells()
        if self._judge is not None:
            self._judge.tell()
        if self._cells is not None:
            self._cells.next_step()
        self.step_count += 1
        self._guard(self._reload)
        self._arm()

    def _finish_step(self) -> None:
        self._parameters.after()
        self._board.write(self.step_count)
        if self._judge is not None:
            self._judge.step(self.step_count)
        self._count_step()

    def _leave_out_cells(self) -> None:
        if self._cells is not None:
            self._cells.remove()
            self._cells = None
            self._board.leave_out(("actv", "actv_grad"))

    def _remove_hooks(self) -> None:
        if self._cells is not None:
            self._cells.remove()
        self._cells = self._parameters = self._budget = None
        self.monitoring = self._armed = False
        if self._board is not None:
            self._board.drop()

    def _remove_step_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def generate_wgrad_metrics(self) -> tuple:
        """Returns the statistics of gradients of the open step, or else of the last, for format "api".

        Returns:
            (gradients that the optimizer gets, {}): those before the reduction are not to be seen.
        """
        return (self._board.rows("grad_reduced") if self._board is not None else {}), {}

    def generate_xy_metrics(self) -> tuple:
        """Returns the statistics of inputs and outputs of Cells of the open step, or else of the last, for format "api".

        Returns:
            (activations, gradients of outputs), each tag -> {statistic: value}.
        """
        if self._board is None:
            return {}, {}
        return self._board.rows("actv"), self._board.rows("actv_grad")

    def close(self) -> None:
        """Removes all hooks, writes the last heartbeat and says what the run had; done when the process ends, too."""
        self._remove_hooks()
        self._remove_step_hooks()
        if self._board is not None:
            self._board.end()


def _end_at_exit(monitor: Any) -> None:
    alive = monitor()
    if alive is not None and alive._board is not None:
        alive._board.end()

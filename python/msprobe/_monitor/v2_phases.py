"""What TrainerMonitorV2 does whatever the framework: which steps are written, when they end, what ends it."""

from __future__ import annotations

from typing import Any

from .._capture.log import logger
from .config import whole_number
from .v2_config import V2Config
from .v2_files import V2Files

_NEED_OPTIMIZER = ("weight_grad", "optimizer", "param")


class V2Phases:
    """One process of TrainerMonitorV2. The framework's part hooks in `start` and reads in `_collect`."""

    faults: tuple = ()  # what ends the monitor and not the training

    def __init__(self, config: V2Config, rank: int) -> None:
        """Makes the output directory, if this rank is monitored.

        Args:
            config: What is wanted.
            rank: Of this process.

        Raises:
            ValueError: The directory cannot be written.
        """
        self._config = config
        self.rank = rank
        self.current_step = 0
        self._collected = 0
        self._files: V2Files | None = None
        if not config.ranks or rank in config.ranks:
            self._files = V2Files(config, rank)
        self._parts: list = []  # what has remove()
        self._armed = False  # in the open step
        self._watching: list = []  # parts that have armed
        self._counting: list = []  # parts that have next_step()
        self._micro_batches = 1
        self._by_optimizer = False
        self._broken = self._warned = False

    def _collect(self) -> None:
        """Reads what is read at the end of a step."""
        raise NotImplementedError

    def _begin(self, model: Any, optimizer: Any, context: dict) -> list:
        """Checks what start() was given. Returns (prefix of names, model) of each chunk."""
        for kind in self._config.monitors:
            if kind != "cc" and model is None:
                raise ValueError(f"monitor {kind} needs the model: call start(model=model, optimizer=optimizer)")
            if kind in _NEED_OPTIMIZER and optimizer is None:
                raise ValueError(f"monitor {kind} needs the optimizer: call start(model=model, optimizer=optimizer)")
        patched = self._config.patch_optimizer_step
        self._by_optimizer = optimizer is not None and (patched is None or patched)
        self._micro_batches = self._passes(context)
        several = isinstance(model, (list, tuple))
        return [(f"{i}:" if several else "", m) for i, m in enumerate(model if several else [model]) if m is not None]

    def _passes(self, context: dict) -> int:
        options = self._config.monitors["weight_grad"].options if "weight_grad" in self._config.monitors else {}
        for source in (options, context):
            for name in ("micro_batch_number", "grad_acc_steps"):
                if source.get(name) is not None:
                    return whole_number(source[name], name, 1, 1)
        return 1

    def _is_target(self, name: str) -> bool:
        targets = self._config.monitors["module"].targets
        return not targets or any(target in name for target in targets)

    def _arm(self) -> None:
        due = self._config.is_monitored(self.current_step) and self._collected < self._config.collect_times
        self._armed = due and not self._broken
        for part in self._watching:
            part.armed = self._armed

    def _guard(self, what: Any, *arguments: Any) -> None:
        if self._broken:
            return
        try:
            what(*arguments)
        except self.faults as error:
            self._broken = True
            logger.error("monitor: it ends here, the training goes on: %s: %s", type(error).__name__, error)

    def step(self) -> None:
        """Ends a step, unless the optimizer does."""
        if self._by_optimizer and self._parts:
            if not self._warned:
                logger.warning("monitor: step() does nothing, because the optimizer's steps are the monitor's")
            self._warned = True
            return
        self._end_step()

    def _end_step(self) -> None:
        if self._files is None:
            return
        if self._armed:
            self._guard(self._write)
        elif not self._broken:
            self._files.drop()
        for part in self._counting:
            part.next_step()
        self.current_step += 1
        self._arm()

    def _write(self) -> None:
        self._collect()
        self._files.write(self.current_step)
        self._collected += 1

    def stop(self) -> None:
        """Removes the hooks."""
        for part in self._parts:
            part.remove()
        for parts in (self._parts, self._watching, self._counting):
            parts.clear()
        self._armed = False

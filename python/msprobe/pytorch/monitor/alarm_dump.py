"""A dump of the steps that follow an alarm, by PrecisionDebugger."""

import os
from typing import Any, Optional

from ..._capture.log import logger

_MOST_DUMPS = 3  # of a run


class AlarmDump:
    """Starts and stops a PrecisionDebugger around whole steps."""

    def __init__(self, model: list, directory: str, config: str) -> None:
        """Dumps nothing yet.

        Args:
            model: The chunks of the model.
            directory: Where dumps go, a directory for each alarm.
            config: A configuration of PrecisionDebugger; empty: statistics of functions.
        """
        self._model = model[0] if len(model) == 1 else model
        self._directory, self._config = directory, config
        self._debugger: Optional[Any] = None
        self._left = 0
        self._dumps = 0

    def begin(self, step: int, steps: int) -> None:
        """Dumps the steps that come.

        Args:
            step: That has ended.
            steps: How many.
        """
        if self._debugger is not None or self._dumps >= _MOST_DUMPS:
            return
        from .. import PrecisionDebugger

        self._dumps += 1
        self._left = steps
        place = os.path.join(self._directory, f"alarm_step{step}")
        if self._config:
            self._debugger = PrecisionDebugger(config_path=self._config, dump_path=place)
        else:
            self._debugger = PrecisionDebugger(task="statistics", dump_path=place)
        logger.info("monitor: the next %d steps are dumped into %s", steps, place)
        self._debugger.start(model=self._model)

    def next_step(self) -> None:
        """A step has ended."""
        if self._debugger is None:
            return
        self._debugger.stop()
        self._debugger.step()
        self._left -= 1
        if self._left > 0:
            self._debugger.start(model=self._model)
        else:
            self._debugger = None

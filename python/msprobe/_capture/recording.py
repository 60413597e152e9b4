"""One step as a block of code: `with PrecisionDebugger.record(model): ...`."""

from contextlib import ContextDecorator
from typing import Any


class Recording(ContextDecorator):
    """Result of PrecisionDebugger.record(): start() before a block, stop() and step() after it."""

    def __init__(self, debugger: Any, model: Any, step: bool, options: dict) -> None:
        """Prepares the block; nothing is recorded yet.

        Args:
            debugger: PrecisionDebugger.
            model: See PrecisionDebugger.start().
            step: Whether to call step() as well.
            options: Further arguments of start().
        """
        self._debugger = debugger
        self._model = model
        self._step = step
        self._options = options

    def __enter__(self) -> Any:
        """Calls start() and returns the debugger."""
        self._debugger.start(self._model, **self._options)
        return self._debugger

    def __exit__(self, *error: Any) -> None:
        """Calls stop() and step(). Exceptions propagate."""
        self._debugger.stop()
        if self._step:
            self._debugger.step()

"""One step as a block of code: `with PrecisionDebugger.record(model): ...`."""

from contextlib import ContextDecorator
from typing import Any


class Recording(ContextDecorator):
    """start() at the beginning of the block; stop() and step() at its end, however it is left."""

    def __init__(self, debugger: Any, model: Any, step: bool, options: dict):
        self._debugger = debugger
        self._model = model
        self._step = step
        self._options = options

    def __enter__(self) -> Any:
        self._debugger.start(self._model, **self._options)
        return self._debugger

    def __exit__(self, *error: Any) -> None:
        self._debugger.stop()
        if self._step:
            self._debugger.step()

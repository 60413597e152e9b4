"""Which calls of a script are made again, and that nothing of it reaches the script."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Optional

from ..config import Config
from ..log import logger
from .limits import Difference
from .rows import Rows
from .settings import Settings

# What a function raises for inputs that it does not take, and files that cannot be written.
FAULTS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
    AssertionError,
    ImportError,
    NameError,
    OSError,
)


class Benchmark:
    """What task free_benchmark does in each step. A framework says how calls are seen and made again."""

    def __init__(self, config: Config) -> None:
        """Takes a configuration whose section is valid."""
        self._settings = Settings.of(config.section)
        self._scope, self._list = config.scope, config.list_
        self._counts: Counter = Counter()
        self._rows: Optional[Rows] = None
        self._step, self._calls = 0, 0
        self._watching = False
        self._warned: set = set()

    def begin(self, directory: str, step: int) -> None:
        """Watches the functions of the framework until end(). The counts of a step begin with its first start()."""
        if self._watching:
            return
        if self._rows is None:
            self._step = step
            self._rows = self._new_rows(directory, step)
            self._counts.clear()
        self._watching = True
        self._watch()

    def end(self) -> None:
        """Leaves the framework as it was."""
        if self._watching:
            self._watching = False
            self._leave()

    def end_step(self) -> str:
        """Ends a step, whose counts the next one does not go on with. Returns what was done in it."""
        self.end()
        calls, done = self._calls, self._rows
        self._rows, self._calls = None, 0
        rows = done.count if done is not None else 0
        where = f", in {done.path}" if done is not None and rows else ""
        return f"free_benchmark made {calls} calls again, {rows} results are not consistent{where}"

    def _new_rows(self, directory: str, step: int) -> Rows:
        raise NotImplementedError

    def _watch(self) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError

    def _described(self, result: Any) -> tuple[Any, Any]:
        """The dtype and the shape of a result, as they stand in the csv file."""
        raise NotImplementedError

    def _is_listed(self, name: str) -> bool:
        return not self._list or any(part in name for part in self._list)

    def _wants(self, name: str) -> bool:
        return (not self._scope or name in self._scope) and self._is_listed(name)

    def _guarded(self, name: str, kind: str, work: Callable[[], Any]) -> Any:
        """Nothing that goes wrong in a changed call reaches the script; the first fault of a kind of call is logged."""
        try:
            return work()
        except FAULTS as error:
            self._leave_out(name, kind, f"{type(error).__name__} ({_first_line(error)})")
            return None

    def _leave_out(self, name: str, kind: str, why: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning("free_benchmark: %s is not compared: %s", name, why)

    def _differs(self, name: str, difference: Difference) -> None:
        if self._rows is not None:
            self._rows.add(name, difference, *self._described(difference.result))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]

"""What runs in compiled code is not seen: whom that is reported to."""

from collections.abc import Callable

from ..._capture.log import logger
from .. import regions

_MOST_TOLD = 3  # in the log; reports name all


class CompiledWatch:
    """Notices regions that torch.compile has compiled, for those that report on series or laws."""

    def __init__(self) -> None:
        """Begins to watch."""
        self._names: dict = {}  # in the order in which they came
        self._listeners: list = []
        self._undo = regions.follow(self._begins)

    def tell(self, listener: Callable[[list], None]) -> None:
        """Has a function called with the names of regions, whenever there is a new one."""
        self._listeners.append(listener)
        if self._names:
            listener(list(self._names))

    def remove(self) -> None:
        """Ends."""
        self._undo()
        self._listeners.clear()

    def _begins(self, name: str, is_module: bool) -> None:
        if name in self._names:
            return
        self._names[name] = True
        if len(self._names) <= _MOST_TOLD:
            more = "" if is_module else ", nor a step of an optimizer in it"
            logger.warning("monitor: %s is compiled and left alone: what its code computes is not seen%s", name, more)
        for listener in self._listeners:
            listener(list(self._names))

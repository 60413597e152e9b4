"""Objects that live in this process, by their class."""

import functools
import gc
import weakref
from typing import Any, Callable

import torch

_made = 0  # optimizers that were constructed or copied since somebody asked for them


def living(*kinds: type) -> list:
    """Searches the heap, which takes about 0.1 microseconds for each object on it.

    Args:
        kinds: Classes.

    Returns:
        For each class the list of its objects, those of subclasses too; an object is in the list of the first class that it
        is of.
    """
    known: dict = {}  # type -> place of its class
    found: list = [[] for _ in kinds]
    for thing in gc.get_objects():
        # By their type: isinstance() would call what proxies define.
        kind = type(thing)
        place = known.get(kind)
        if place is None:
            place = known[kind] = next((i for i, wanted in enumerate(kinds) if issubclass(kind, wanted)), -1)
        if place >= 0:
            found[place].append(thing)
    return found


class LivingOptimizers:
    """The optimizers of torch.optim in this process; the heap is searched again only when one was made since the last time."""

    def __init__(self) -> None:
        """Watches what makes optimizers from now on."""
        _count_optimizers()
        self._known: list = []  # weak references
        self._searched_at = -1

    def all(self) -> list:
        """Lists those that live.

        Returns:
            Optimizers, wrappers of others too.
        """
        if self._searched_at != _made:
            self._searched_at = _made
            self._known = [weakref.ref(optimizer) for optimizer in living(torch.optim.Optimizer)[0]]
        return [optimizer for optimizer in (known() for known in self._known) if optimizer is not None]

    def has_stepped(self, optimizer: Any) -> None:
        """Searches again next time if this one is not known: its class need not call what is watched.

        Args:
            optimizer: What has stepped; what is none of torch.optim is never found.
        """
        if issubclass(type(optimizer), torch.optim.Optimizer) and all(
            known() is not optimizer for known in self._known
        ):
            self._searched_at = -1


@functools.cache
def _count_optimizers() -> None:
    for name in ("__init__", "__setstate__"):  # the latter where one is copied or unpickled
        setattr(torch.optim.Optimizer, name, _counted(getattr(torch.optim.Optimizer, name)))


def _counted(make: Callable) -> Callable:
    @functools.wraps(make)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _made
        result = make(self, *args, **kwargs)
        _made += 1
        return result

    return counted

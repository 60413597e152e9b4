"""enable_dataloader: the batches of DataLoaders begin and end the steps."""

import functools
from typing import Any, Callable

from torch.utils.data import dataloader

_ITERATOR = dataloader._BaseDataLoaderIter


def follow(begin: Callable[[], None], end: Callable[[], None]) -> Callable[[], None]:
    """Calls `begin` when a batch is there and `end` when the next is asked for; the result undoes that."""
    original = _ITERATOR.__next__
    begun = False  # none is there between the last batch of an epoch and the first of the next

    @functools.wraps(original)
    def next_batch(self: Any) -> Any:
        nonlocal begun
        if begun:
            begun = False
            end()
        batch = original(self)
        begun = True
        begin()
        return batch

    _ITERATOR.__next__ = next_batch

    def undo() -> None:
        if _ITERATOR.__next__ is next_batch:
            _ITERATOR.__next__ = original

    return undo

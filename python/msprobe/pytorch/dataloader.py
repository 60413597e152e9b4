"""enable_dataloader: the batches of DataLoaders begin and end the steps."""

import functools
from typing import Any, Callable

from torch.utils.data import dataloader

_ITERATOR = dataloader._BaseDataLoaderIter


def follow(before: Callable[[], None], after: Callable[[], None]) -> Callable[[], None]:
    """Calls `before` when a batch is asked for and `after` when it is there; the result undoes that."""
    original = _ITERATOR.__next__

    @functools.wraps(original)
    def next_batch(self: Any) -> Any:
        before()
        batch = original(self)
        after()
        return batch

    _ITERATOR.__next__ = next_batch

    def undo() -> None:
        if _ITERATOR.__next__ is next_batch:
            _ITERATOR.__next__ = original

    return undo

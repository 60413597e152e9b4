"""The batches of all ranks as one: what a reference consumes in the place of its own."""

from typing import Optional

from . import tensor_sets
from .exchange import Saved
from .tensor_sets import Stored


class Joined:
    """The n-th batch of a reference is the n-th of each data-parallel rank, one behind the other."""

    def __init__(self, root: str, ranks: list):
        self._each = [Saved(root, rank, "batch") for rank in ranks]

    def next(self) -> Optional[tuple]:
        """Returns where the next batch lies and what it holds; None behind the last."""
        found = [saved.next() for saved in self._each]
        if any(place is None for place in found):
            return None
        where, first, metadata = found[0]
        sets = [tensors for _, tensors, _ in found]
        rows = _rows(first)
        return where, {name: _together([s[name] for s in sets if name in s], rows) for name in first}, metadata


def _rows(tensors: dict) -> int:
    """Returns the rows of a batch: the first dimension that most tensors have."""
    lengths = [tensor.shape[0] for tensor in tensors.values() if tensor.shape]
    return max(set(lengths), key=lengths.count) if lengths else 0


def _together(parts: list, rows: int) -> Stored:
    first = parts[0]
    alike = all(part.shape == first.shape and bytes(part.data) == bytes(first.data) for part in parts)
    if not first.shape or len(parts) == 1 or (alike and first.shape[0] != rows):
        return first
    if any(part.shape[1:] != first.shape[1:] for part in parts):
        raise tensor_sets.SetError("batches of ranks differ in more than their rows: give all ranks one length")
    shape = (sum(part.shape[0] for part in parts), *first.shape[1:])
    return Stored(first.dtype, shape, b"".join(bytes(part.data) for part in parts))

"""Kernels of PyTorch that take many tensors: launching a kernel for each small tensor takes longer than what it computes."""

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import Any

import torch

# Since PyTorch 2.4; torch.optim uses them on devices.
_NAMES = ("_foreach_max", "_foreach_neg", "_foreach_norm", "_foreach_clamp_min", "_foreach_clamp_max")


PIECE = 1 << 16  # elements: before PyTorch 2.11 the largest of a negative tensor is 0 on CUDA where another is longer
_PROBE = ((PIECE, -1.0), (4, -2.0), (16, 3.0))  # elements and their value


@functools.cache
def are_there(device_type: str) -> bool:
    """Tells whether a device has the kernels, and double precision to add up in.

    Args:
        device_type: Such as "cuda".

    Returns:
        True if extremes_and_sums() works there.
    """
    if not all(hasattr(torch, name) for name in _NAMES):
        return False
    try:
        with _may_wait(device_type):
            tensors = [torch.full((size,), value, device=device_type) for size, value in _PROBE]
            low, high, total, norm = (numbers.tolist() for numbers in extremes_and_sums(tensors))
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    values = [value for _, value in _PROBE]
    sums = [size * value for size, value in _PROBE]
    return low == high == values and total == sums and norm == [abs(value) * size**0.5 for size, value in _PROBE]


def _may_wait(device_type: str) -> Any:
    """A script that lets torch refuse all waiting gets no error from ours."""
    if device_type != "cuda":
        return contextlib.nullcontext()
    return _waiting()


@contextlib.contextmanager
def _waiting() -> Iterator[None]:
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode(0)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def pieces_of(tensor: torch.Tensor) -> tuple:
    """Cuts a contiguous tensor into views that extremes_and_sums() takes.

    Args:
        tensor: With elements.

    Returns:
        Its elements in order, PIECE in each but the last.
    """
    return tensor.view(-1).split(PIECE)


def extremes_and_sums(tensors: list) -> list:
    """Smallest and largest element, sum and norm of each tensor.

    Args:
        tensors: Of one floating dtype and device, each with 1 to PIECE elements.

    Returns:
        Four tensors on that device with a number for each: of the dtype, and sums and norms in float64. Of a tensor with NaN all
        are NaN.
    """
    low = torch.stack(torch._foreach_max(torch._foreach_neg(tensors))).neg_()
    high = torch.stack(torch._foreach_max(tensors))
    # On CUDA the largest is at least the lowest number, also where all elements are infinite.
    least = torch.finfo(low.dtype).min
    low, high = (
        torch.where((low == -least) & (high == math.inf), high, low),
        torch.where((high == least) & (low == -math.inf), low, high),
    )
    # There is no sum of many: that of what is above zero, less that of what is below.
    total = torch.stack(torch._foreach_norm(torch._foreach_clamp_min(tensors, 0.0), 1, dtype=torch.float64))
    total -= torch.stack(torch._foreach_norm(torch._foreach_clamp_max(tensors, 0.0), 1, dtype=torch.float64))
    norm = torch.stack(torch._foreach_norm(tensors, 2, dtype=torch.float64))
    return [low, high, total, norm]

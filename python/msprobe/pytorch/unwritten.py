"""Memory that nobody has written: which functions of PyTorch give such, and what is in that of devices."""

import types
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Optional

import torch

from .. import _core
from .device_stats import is_capturing

_disable_transforms = getattr(torch._C, "_DisableFuncTorch", nullcontext)
_SAMPLE = 4096  # bytes


def set_up() -> None:
    """Lets the recorder look at memory of devices."""
    _core.set_device_samples(sample_of, is_same)


def allocating_functions() -> Iterable[tuple[Any, str]]:
    """Yields the owner and the name of each function of torch whose result is memory that nobody has written."""
    builtin = (types.BuiltinFunctionType, types.MethodDescriptorType)
    for owner, start in ((torch, "empty"), (torch.Tensor, "new_empty")):
        yield from ((owner, n) for n in dir(owner) if n.startswith(start) and isinstance(getattr(owner, n), builtin))


def sample_of(storage: torch.UntypedStorage) -> Optional[torch.Tensor]:
    """Copies some of its bytes; None while a graph of the device is captured, which would keep the copy in it."""
    if is_capturing(storage.device):
        return None
    with torch.inference_mode(False), _disable_transforms(), torch.no_grad():
        flat = torch.tensor([], dtype=torch.uint8, device=storage.device).set_(storage)
        return flat[:: max(1, flat.numel() // _SAMPLE)].clone()


def is_same(storage: torch.UntypedStorage, sample: torch.Tensor) -> bool:
    """Tells whether these bytes are still the same; waits for the device."""
    now = sample_of(storage)
    return now is not None and torch.equal(now, sample)

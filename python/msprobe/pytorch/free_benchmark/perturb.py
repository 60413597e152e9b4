"""How tensors of torch are changed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from ..._capture import free_benchmark
from ..._capture.free_benchmark import NOISE, Tensors

HALVES = (torch.float16, torch.bfloat16)
_BITS = {
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def name_of(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).rpartition(".")[2]


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Applies `change` to every tensor of an argument."""
    return free_benchmark.mapped(torch.Tensor, value, change)


def _is_large(tensor: torch.Tensor) -> bool:
    """Whether noise can be seen in it."""
    noise = NOISE.get(name_of(tensor.dtype))
    return noise is not None and tensor.numel() > 0 and bool(tensor.abs().max() >= noise)


class _TorchTensors(Tensors):
    kind = torch.Tensor

    def is_floating(self, tensor: torch.Tensor) -> bool:
        return tensor.is_floating_point() and not tensor.is_meta

    def noisy(self, tensor: torch.Tensor) -> Optional[torch.Tensor]:
        if not _is_large(tensor):
            return None
        noise = NOISE[name_of(tensor.dtype)]
        return torch.where(tensor.abs() > noise**0.5, tensor + noise, tensor).to(tensor.dtype)

    def flipped(self, tensor: torch.Tensor) -> Optional[torch.Tensor]:
        if not _is_large(tensor):
            return None
        bits = tensor.contiguous().view(_BITS[tensor.dtype])
        normal = tensor.abs() > torch.finfo(tensor.dtype).smallest_normal
        return torch.where(normal, bits ^ 1, bits).view(tensor.dtype)

    def exchanged(self, tensor: torch.Tensor) -> Optional[torch.Tensor]:
        if tensor.dim() == 0 or tensor.numel() == 0 or max(tensor.shape[:2]) < 2:
            return None
        made = tensor.clone()
        first, last = (0, -1) if tensor.dim() == 1 else ((0, 0), (-1, -1))
        made[first], made[last] = tensor[last], tensor[first]
        return made

    def widened(self, tensor: torch.Tensor) -> Optional[torch.Tensor]:
        return tensor.float() if tensor.dtype in HALVES else None

    def on_cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.cpu()


TENSORS = _TorchTensors()


def perturbed(mode: str, args: tuple, kwargs: dict) -> Optional[tuple[tuple, dict]]:
    """The arguments of the changed call, or None when there is nothing that could be changed."""
    return free_benchmark.perturbed(TENSORS, mode, args, kwargs)


class Generators:
    """The states of torch's generators."""

    def __init__(self) -> None:
        """Reads them."""
        cuda = torch.cuda.is_initialized()
        self._cpu, self._cuda = torch.get_rng_state(), torch.cuda.get_rng_state_all() if cuda else []

    def set(self) -> None:
        """Puts them back."""
        torch.set_rng_state(self._cpu)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


@contextlib.contextmanager
def drawing_from(before: Generators) -> Iterator[None]:
    """Draws the numbers that were drawn from these states on; the script then draws what it would have drawn."""
    after = Generators()
    before.set()
    try:
        yield
    finally:
        after.set()

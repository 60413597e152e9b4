"""How the inputs of a call are changed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from .settings import ADD_NOISE, BIT_NOISE, CHANGE_VALUE, IMPROVE_PRECISION, NO_CHANGE, TO_CPU

HALVES = (torch.float16, torch.bfloat16)
# By how much an element is moved; half of the digits are above its root.
NOISE = {torch.bfloat16: 1e-4, torch.float16: 1e-6, torch.float32: 1e-8, torch.float64: 1e-16}
_BITS = {
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Applies `change` to every tensor of an argument."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(part, change) for part in value))
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(mapped(part, change) for part in value)
    return value


def first_input(args: tuple) -> int:
    """Returns the index of the argument that is changed; -1 without one."""
    for index, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            if value.is_floating_point() and not value.is_meta:
                return index
        elif isinstance(value, (list, tuple, dict)):
            return index
    return -1


def _noisy(tensor: torch.Tensor) -> torch.Tensor:
    noise = NOISE[tensor.dtype]
    return torch.where(tensor.abs() > noise**0.5, tensor + noise, tensor).to(tensor.dtype)


def _flipped(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.contiguous().view(_BITS[tensor.dtype])
    normal = tensor.abs() > torch.finfo(tensor.dtype).smallest_normal
    return torch.where(normal, bits ^ 1, bits).view(tensor.dtype)


def _exchanged(tensor: torch.Tensor) -> torch.Tensor:
    made = tensor.clone()
    first, last = (0, -1) if tensor.dim() == 1 else ((0, 0), (-1, -1))
    made[first], made[last] = tensor[last], tensor[first]
    return made


def _is_large(tensor: torch.Tensor) -> bool:
    """Whether noise can be seen in it."""
    return tensor.dtype in NOISE and tensor.numel() > 0 and bool(tensor.abs().max() >= NOISE[tensor.dtype])


def _has_ends(tensor: torch.Tensor) -> bool:
    """Whether it has two elements that can be exchanged."""
    if tensor.dim() == 1:
        return tensor.shape[0] > 1
    return tensor.dim() > 1 and tensor.numel() > 0 and max(tensor.shape[:2]) > 1


_FIRST_ONLY = {
    ADD_NOISE: (_is_large, _noisy),
    BIT_NOISE: (_is_large, _flipped),
    CHANGE_VALUE: (_has_ends, _exchanged),
}


def perturbed(mode: str, args: tuple, kwargs: dict) -> Optional[tuple[tuple, dict]]:
    """Changes the inputs of a call.

    Args:
        mode: One of settings.MODES.
        args: The positional arguments; they stay as they are.
        kwargs: The keyword arguments.

    Returns:
        The arguments of the changed call, or None when there is nothing that could be changed.
    """
    at = first_input(args)
    if at < 0:
        return None
    changed = [mode == NO_CHANGE or mode == TO_CPU]
    if mode in _FIRST_ONLY:
        fits, change = _FIRST_ONLY[mode]

        def move(tensor: torch.Tensor) -> torch.Tensor:
            if changed[0] or not tensor.is_floating_point() or not fits(tensor):
                return tensor
            changed[0] = True
            return change(tensor)

        args = (*args[:at], mapped(args[at], move), *args[at + 1 :])
    elif mode in (IMPROVE_PRECISION, TO_CPU):

        def widen(tensor: torch.Tensor) -> torch.Tensor:
            if mode == TO_CPU:
                tensor = tensor.cpu()
            if tensor.dtype not in HALVES:
                return tensor
            changed[0] = True
            return tensor.float()

        args, kwargs = mapped(args, widen), mapped(kwargs, widen)
    if not changed[0]:
        return None
    if "inplace" in kwargs:
        kwargs = {**kwargs, "inplace": False}
    return args, kwargs


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

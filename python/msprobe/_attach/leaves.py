"""Values of any kind taken apart into named leaves, each with a checksum or the value itself."""

import random
import sys
from typing import Any, Optional

import torch

from .. import _core
from .forward_call import is_users_module
from .tensor_checksum import checksum

_MOST_LEAVES = 20_000  # of one snapshot of the variables of a program
_MOST_ITEMS = 2_000  # of one container
_DEEPEST = 8
_LONGEST_TEXT = 80


class Leaves:
    """Names and checksums of what holds state (`tensors`) and of what may be only a number of the script (`numbers`)."""

    def __init__(self, skip: Any = None):
        self.tensors: dict = {}
        self.numbers: dict = {}
        self._skip = skip or (lambda value: False)
        self._seen: set = set()
        self._keep: list = []  # what ids in _seen stand for

    def add(self, name: str, value: Any, deep: int = 0) -> None:
        """Adds `value` under `name`, and what is in it under names that begin so."""
        if deep > _DEEPEST or len(self.tensors) + len(self.numbers) > _MOST_LEAVES or self._skip(value):
            return
        if isinstance(value, torch.Tensor):
            self._add_tensor(name, value)
        elif value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self.numbers[name] = repr(value)[:_LONGEST_TEXT]
        elif (state := generator_state(value)) is not None:
            self.tensors[name] = state
        elif _is_array(value):
            # Objects in an array have no bytes of their own.
            text = _crc(repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes())
            (self.tensors if value.size > 1 else self.numbers)[name] = f"{value.dtype}{value.shape} {text}"
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            self._keep.append(value)
            self._add_container(name, value, deep)

    def _add_tensor(self, name: str, tensor: torch.Tensor) -> None:
        if tensor.is_meta or isinstance(tensor, torch._subclasses.FakeTensor):
            return
        if tensor.numel() == 1 and not tensor.is_complex() and tensor.layout is torch.strided:
            self.numbers[name] = repr(tensor.detach().item())
        elif _is_random_state(tensor):
            # A copy that the script has made: the generator itself is what the steps use.
            self.numbers[name] = checksum(tensor)
        else:
            self.tensors[name] = checksum(tensor)

    def _add_container(self, name: str, value: Any, deep: int) -> None:
        if isinstance(value, dict):
            items = [(str(key), value[key]) for key in list(value)[:_MOST_ITEMS]]
        elif isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
            items = self._of_sequence(name, list(value))
        elif isinstance(value, (set, frozenset)):
            self.numbers[name] = _crc(repr(sorted(map(repr, value))).encode())
            return
        elif is_users_object(value):
            items = list(vars(value).items())
        else:
            return
        if not items and name not in self.numbers:
            self.numbers[name] = "empty"
        for key, item in items:
            self.add(f"{name}.{key}", item, deep + 1)

    def _of_sequence(self, name: str, values: list) -> list:
        if len(values) > 8 and all(type(value) in (int, float, bool, str) for value in values):
            self.numbers[name] = f"{len(values)} values {_crc(repr(values).encode())}"
            return []
        return [(str(number), value) for number, value in enumerate(values[:_MOST_ITEMS])]


def is_users_object(value: Any) -> bool:
    """Tells whether a value is an instance of a class of the user's program that holds attributes."""
    kind = type(value)
    return not isinstance(value, type) and is_users_module(kind.__module__) and hasattr(value, "__dict__")


def generator_state(value: Any) -> Optional[str]:
    """Returns a checksum of the state of a generator of random numbers; None for anything else."""
    if isinstance(value, torch.Generator):
        return checksum(value.get_state())
    if isinstance(value, random.Random):
        return _crc(repr(value.getstate()).encode())
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(numpy, "random", None) is None:
        return None
    if isinstance(value, numpy.random.Generator):
        return _crc(repr(value.bit_generator.state).encode())
    if isinstance(value, numpy.random.RandomState):
        return _crc(repr([_plain(part) for part in value.get_state()]).encode())
    return None


def _is_random_state(tensor: torch.Tensor) -> bool:
    """Tells whether a tensor is what get_rng_state() returns: on the host whichever device the generator is of."""
    if tensor.dtype is not torch.uint8 or tensor.dim() != 1 or tensor.device.type != "cpu":
        return False
    sizes = {torch.get_rng_state().numel()}
    for device in ("cuda", "npu"):
        backend = getattr(torch, device, None)
        if backend is not None and backend.is_available() and backend.is_initialized():
            sizes.add(backend.get_rng_state().numel())
    return tensor.numel() in sizes


def _plain(part: Any) -> Any:
    return part.tolist() if hasattr(part, "tolist") else part


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, "ndarray", ()))


def _crc(data: bytes) -> str:
    return f"{_core.crc32_of(data):08x}"

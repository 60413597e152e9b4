"""What packing the configuration needs of a framework."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Callable

from .._capture.guard import shielded
from .._compat import distributed_module
from . import random_calls

FEATURES = ("max", "min", "mean", "norm")


class TorchSide:
    """PyTorch."""

    def __init__(self) -> None:
        import torch

        self._torch = torch

    def is_model(self, value: Any) -> bool:
        return isinstance(value, self._torch.nn.Module)

    def rank(self) -> int:
        distributed = distributed_module()
        return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0

    def alone(self) -> bool:
        distributed = distributed_module()
        return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() == 1

    def parameters(self, model: Any) -> Iterator[tuple[str, Any]]:
        return model.named_parameters()

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor)

    def features(self, tensor: Any) -> dict[str, float] | None:
        """max, min, mean and norm in float32; None of a tensor that has none."""
        torch = self._torch
        if tensor.numel() == 0 or tensor.is_complex() or tensor.is_sparse or tensor.is_meta:
            return None
        with torch.no_grad():
            flat = tensor.detach().float()
            return {name: float(getattr(flat, name)()) for name in FEATURES}

    def on_forward(self, model: Any, hook: Callable[[tuple, dict], None]) -> Callable[[], None]:
        """Calls the hook before each forward; returns what ends that."""
        call = shielded(lambda _, args, kwargs: hook(args, kwargs))
        handle = model.register_forward_pre_hook(call, with_kwargs=True)
        return handle.remove

    def count_random_calls(self) -> None:
        names = ("rand", "randint", "randn", "rand_like", "randint_like", "randn_like", "randperm", "manual_seed")
        random_calls.replace(self._torch, "torch", (*names, "bernoulli", "multinomial", "normal"))
        in_place = ("exponential_", "geometric_", "log_normal_", "cauchy_", "normal_", "uniform_", "random_")
        random_calls.replace(self._torch.Tensor, "torch.Tensor", (*in_place, "bernoulli_"))


class MindSporeSide:
    """MindSpore."""

    def __init__(self) -> None:
        import mindspore

        self._mindspore = mindspore

    def is_model(self, value: Any) -> bool:
        return isinstance(value, self._mindspore.nn.Cell)

    def _communication(self) -> Any:
        from mindspore.communication import GlobalComm

        return GlobalComm

    def rank(self) -> int:
        if not self._communication().INITED:
            return 0
        from mindspore.communication import get_rank

        return get_rank()

    def alone(self) -> bool:
        if not self._communication().INITED:
            return True
        from mindspore.communication import get_group_size

        return get_group_size() == 1

    def parameters(self, model: Any) -> Iterator[tuple[str, Any]]:
        return model.parameters_and_names()

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._mindspore.Tensor)

    def features(self, tensor: Any) -> dict[str, float] | None:
        """max, min, mean and norm in float32; None of a tensor that has none."""
        import numpy

        if tensor.size == 0 or "Complex" in str(tensor.dtype):
            return None
        # As an array: an op of the framework in a graph would be one more of the model's.
        array = tensor.float().asnumpy() if str(tensor.dtype) == "BFloat16" else tensor.asnumpy()
        flat = numpy.asarray(array, dtype=numpy.float32).ravel()
        norm = numpy.linalg.norm(flat)
        values = (flat.max(), flat.min(), flat.mean(), norm)
        return {name: float(value) for name, value in zip(FEATURES, values)}

    def on_forward(self, model: Any, hook: Callable[[tuple, dict], None]) -> Callable[[], None]:
        """Calls the hook before each construct; returns what ends that."""
        construct = model.construct

        @functools.wraps(construct)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            hook(args, kwargs)
            return construct(*args, **kwargs)

        model.construct = hooked

        def remove() -> None:
            model.construct = construct

        return remove

    def count_random_calls(self) -> None:
        random_calls.replace(self._mindspore.ops, "mindspore.ops", ("rand", "randint", "randn"))
        random_calls.replace(self._mindspore, "mindspore", ("set_seed",))


_SIDES = {"pytorch": TorchSide, "mindspore": MindSporeSide}


def side_of(fmk: str) -> TorchSide | MindSporeSide:
    """The framework of that name; ValueError for others."""
    if fmk not in _SIDES:
        raise ValueError(f"fmk must be pytorch or mindspore, not {fmk!r}")
    return _SIDES[fmk]()

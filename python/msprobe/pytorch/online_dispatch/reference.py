"""The reference of a call: the same operator on the CPU, with more digits where there are more."""

from typing import Any

import torch

from ..device_stats import is_capturing
from ..free_benchmark.perturb import mapped
from .judged_ops import is_conversion, written

# On another device the CPU computes halves in float32; on the CPU itself all is computed in float64.
_OF_DEVICE = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
_OF_CPU = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def tensors_in(value: Any) -> list:
    """Lists the tensors of an argument or a result."""
    found: list = []
    mapped(value, lambda tensor: found.append(tensor) or tensor)
    return found


def can_copy(tensors: list) -> bool:
    """Whether these are values that lie in memory, and may be copied now."""
    return all(
        tensor.layout == torch.strided and not tensor.is_meta and not tensor.is_quantized and not tensor.is_nested
        for tensor in tensors
    ) and not any(is_capturing(tensor.device) for tensor in tensors if tensor.device.type != "cpu")


def copied(value: Any) -> Any:
    """Copies values to the CPU as they are."""
    return mapped(value, lambda tensor: tensor.detach().to("cpu", copy=True))


def device_of(args: tuple, kwargs: dict) -> torch.device:
    """The device that a call computes on: of its tensors the first that is not on the CPU."""
    devices = [tensor.device for tensor in tensors_in((args, kwargs))]
    devices += [value for value in (*args, *kwargs.values()) if isinstance(value, torch.device)]
    return next((device for device in devices if device.type != "cpu"), torch.device("cpu"))


def results_of(operator: Any, result: Any, args: tuple, kwargs: dict) -> list:
    """Lists what a call computed: its results, and what it overwrote without returning it."""
    found = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
    known = {id(tensor) for tensor in tensors_in(found)}
    for argument in written(operator, args, kwargs):
        found += [tensor for tensor in tensors_in(argument) if id(tensor) not in known]
    return found


def call_again(operator: Any, args: tuple, kwargs: dict, device: torch.device) -> list:
    """Makes the call on the CPU.

    Args:
        operator: The operator.
        args: Copies of its arguments, on the CPU; they stay as they are.
        kwargs: Copies of its keyword arguments.
        device: The device of the training's call.

    Returns:
        What it computed, in the order of results_of().

    Raises:
        RuntimeError: The operator cannot be called there.
    """
    wider = {} if is_conversion(operator) else _OF_CPU if device.type == "cpu" else _OF_DEVICE

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return wider.get(value, value)
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if name == "half_to_float" or name == "pin_memory":
            return False if value else value
        return mapped(value, lambda tensor: tensor.to(wider.get(tensor.dtype, tensor.dtype), copy=True))

    names = [argument.name for argument in operator._schema.arguments]
    args = tuple(changed(name, value) for name, value in zip(names, args))
    kwargs = {name: changed(name, value) for name, value in kwargs.items()}
    state = torch.get_rng_state()
    try:
        result = operator(*args, **kwargs)
    finally:
        torch.set_rng_state(state)
    return results_of(operator, result, args, kwargs)

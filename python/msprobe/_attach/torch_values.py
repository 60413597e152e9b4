"""Tensors of PyTorch as they lie in files, and batches of any nesting as named tensors."""

import math
from typing import Any, Callable, Optional

import torch

from . import tensor_sets
from .exchange import Refused
from .tensor_sets import Stored

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
for _name, _kind in (("U64", "uint64"), ("U32", "uint32"), ("U16", "uint16"), ("F8_E4M3", "float8_e4m3fn")):
    if hasattr(torch, _kind):
        _TYPES[_name] = getattr(torch, _kind)
_NAMES = {kind: name for name, kind in _TYPES.items()}
_DEEPEST = 16


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the dense part of a tensor that this process holds."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def stored(tensor: torch.Tensor) -> Optional[tuple]:
    """Returns a tensor for a file, and what keeps its memory; None for types that files do not have."""
    plain = local(tensor).resolve_conj().resolve_neg().cpu().contiguous()
    name = _NAMES.get(plain.dtype)
    if name is None or plain.is_quantized:
        return None
    data = tensor_sets.bytes_at(plain.data_ptr(), plain.numel() * plain.element_size())
    return Stored(name, tuple(plain.shape), data), plain


def loaded(value: Stored) -> torch.Tensor:
    """Returns a stored tensor, on the host."""
    kind = _TYPES[value.dtype]
    if math.prod(value.shape) == 0:
        return torch.empty(value.shape, dtype=kind)
    return torch.frombuffer(bytearray(value.data), dtype=kind).reshape(value.shape)


def like(value: Stored, model: torch.Tensor, name: str, where: str, any_size: bool = False) -> torch.Tensor:
    """Returns a stored tensor as one of the type and device of `model`, and of its shape unless any will do.

    Raises:
        Refused: The shapes differ, or the type of `model` cannot hold the values.
    """
    if tuple(value.shape) != tuple(model.shape) and not (any_size and len(value.shape) == model.dim()):
        raise Refused(
            f"{where}: {name} has the shape {list(value.shape)}, and {list(model.shape)} in the script: replay with the "
            "batch size, length and layout that it was saved with"
        )
    tensor = loaded(value)
    cast = tensor.to(model.dtype)
    whole = not (model.dtype.is_floating_point or model.dtype.is_complex)
    if whole and tensor.dtype != model.dtype and not torch.equal(cast.to(tensor.dtype), tensor):
        raise Refused(f"{where}: {name} does not fit into {model.dtype}: save it in that type")
    cast = cast.to(model.device)
    return cast.pin_memory() if model.device.type == "cpu" and model.is_pinned() else cast


def leaves_of(value: Any, path: str = "", deep: int = 0) -> dict:
    """Lists the tensors and arrays in a batch by their paths, such as `inputs.tokens` or `0`."""
    if isinstance(value, torch.Tensor) or _is_array(value):
        return {path or "batch": value}
    found: dict = {}
    if deep < _DEEPEST:
        for key, part in _items(value):
            found.update(leaves_of(part, f"{path}.{key}" if path else str(key), deep + 1))
    return found


def rebuilt(value: Any, new: Callable[[str, Any], Any], path: str = "", deep: int = 0) -> Any:
    """Returns a batch with each tensor or array exchanged for what `new(path, old)` gives; containers keep their types."""
    if isinstance(value, torch.Tensor) or _is_array(value):
        return new(path or "batch", value)
    if deep >= _DEEPEST:
        return value
    parts = {key: rebuilt(part, new, f"{path}.{key}" if path else str(key), deep + 1) for key, part in _items(value)}
    if not parts:
        return value
    if isinstance(value, tuple):
        return type(value)(*parts.values()) if hasattr(value, "_fields") else type(value)(parts.values())
    if isinstance(value, (list, dict)) or hasattr(value, "items"):
        for key, part in parts.items():
            value[key] = part
    else:
        for key, part in parts.items():
            setattr(value, key, part)
    return value


def _items(value: Any) -> list:
    if isinstance(value, (str, bytes, int, float)) or value is None:
        return []
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return list(zip(range(len(value)), value))
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if hasattr(value, "items") and hasattr(value, "__setitem__"):
        return list(value.items())
    return list(vars(value).items()) if hasattr(value, "__dataclass_fields__") else []


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0

"""What a dump must say of a tensor, computed here by NumPy in float64 from its raw elements."""

import zlib

import numpy as np
import torch
from plain_figures import figures_of
from torch.utils._python_dispatch import _disable_current_modes

# As wide as numbers of a type need, without rounding one.
_WIDER = {
    torch.complex32: torch.complex64,
    **{t: torch.float64 for t in (torch.bfloat16, torch.float16, torch.float32)},
    **{getattr(torch, n): torch.float64 for n in dir(torch) if n.startswith("float8_")},
}
_ELEMENTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def is_wrapper(tensor):
    """Whether a subclass has no memory of its own."""
    try:
        return tensor.untyped_storage().data_ptr() == 0 and tensor.numel() > 0
    except (RuntimeError, NotImplementedError):
        return True


def _parts(tensor):
    """The plain tensor whose elements count, and the shape to tell; None where nothing is known."""
    if torch._is_functional_tensor(tensor):
        torch._sync(tensor)  # operators in place wait until it is used
        return _parts(torch._from_functional_tensor(tensor))[0], None
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return _parts(torch._C._functorch.get_unwrapped(tensor))[0], None
    kind = type(tensor).__name__
    shape = list(tensor.shape) if not getattr(tensor, "is_nested", False) else None
    if kind == "DTensor":
        local = tensor._local_tensor
        return _parts(local)[0], None
    if kind == "AsyncCollectiveTensor":
        return torch.ops._c10d_functional.wait_tensor(tensor.elem), shape
    if kind == "FakeTensor" or tensor.device.type == "meta":
        return None, shape
    if kind == "MaskedTensor":
        return torch.masked_select(tensor.get_data(), tensor.get_mask()), shape
    if getattr(tensor, "is_nested", False):
        return tensor.values() if tensor.layout == torch.jagged else torch.cat(
            [t.flatten() for t in tensor.unbind()]
        ), None
    if tensor.is_quantized:
        return tensor.dequantize(), shape
    if tensor.layout == torch.sparse_coo:
        return tensor._values(), shape
    if tensor.layout != torch.strided:
        return tensor.values() if tensor.layout != torch._mkldnn else tensor.to_dense(), shape
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        if is_wrapper(tensor):
            return None, shape
        tensor = tensor.as_subclass(torch.Tensor)
    return tensor, shape


def raw_bytes(plain):
    """The elements of a plain tensor in order, as they are stored."""
    plain = (
        plain.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    )  # numpy() pins a storage's size
    if plain.dtype == torch.bool:
        return plain.view(torch.uint8).numpy().tobytes()
    size = plain.element_size()
    if plain.dtype.is_complex:
        plain, size = torch.view_as_real(plain), size // 2
    return plain.reshape(-1).view(_ELEMENTS[size]).numpy().tobytes()


def _numbers(plain):
    plain = plain.resolve_conj().resolve_neg()
    return plain.to(_WIDER.get(plain.dtype, plain.dtype), copy=True).contiguous().numpy().reshape(-1)


def figures(plain):
    """Those of a plain tensor, all None where it has no elements or no memory."""
    if plain.numel() == 0 or plain.untyped_storage().nbytes() == 0:
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    return figures_of(_numbers(plain), plain.dim() == 0)


def item(value, depth=0):
    """The item of a value: exact for tensors and plain values, {"any": ...} for what is not looked at."""
    if depth > 20:
        return {"any": "deep"}
    if isinstance(value, torch.Tensor):
        return tensor_item(value)
    if value is None:
        return None
    if isinstance(value, (bool, int, float, str)) and type(value) in (bool, int, float, str):
        return {"value": value}
    if isinstance(value, dict):
        return {"dict": {str(k): item(v, depth + 1) for k, v in value.items()}}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"dict": {k: item(v, depth + 1) for k, v in zip(value._fields, value)}}
    if isinstance(value, (torch.Size, torch.dtype, torch.device)):
        return {"any": type(value).__name__}
    if isinstance(value, (list, tuple)):
        return [item(v, depth + 1) for v in value]
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {"dict": {k: item(getattr(value, k), depth + 1) for k in value.__dataclass_fields__}}
    return {"any": type(value).__name__}


def _xor(raw):
    """All 64-bit words of the elements, the last one filled up with zeros."""
    words = np.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype="<u8")
    return int(np.bitwise_xor.reduce(words)) if words.size else 0


def tensor_item(tensor):
    """dtype, shape, requires_grad, figures, and the CRC-32 of the elements."""
    with (
        torch.no_grad(),
        torch._C.DisableTorchFunctionSubclass(),
        torch._C._DisableFuncTorch(),
        _disable_current_modes(),
    ):
        found = {
            "tensor": True,
            "dtype": str(tensor.dtype),
            "requires_grad": tensor.requires_grad,
        }
        plain, shape = _parts(tensor)
        if "AsyncCollectiveTensor" in (type(tensor).__name__, type(getattr(tensor, "_local_tensor", None)).__name__):
            found["waits"] = True  # null before somebody waited for it
        if shape is not None:
            found["shape"] = shape
        if plain is None:
            found.update({"Max": None, "Min": None, "Mean": None, "Norm": None})
            return found
        plain = plain.detach()
        found.update(figures(plain))
        raw = raw_bytes(plain) if found["Max"] is not None else b""
        found["xor"] = f"0x{_xor(raw):016x}"
        found["crc"] = f"{zlib.crc32(raw):08x}" if found["Max"] is not None else None
        if (
            tensor.layout != torch.strided
            or tensor.is_quantized
            or type(tensor) not in (torch.Tensor, torch.nn.Parameter)
        ):
            found["crc"] = None  # of these no page says which bytes count
        return found

"""Values the recorder cannot read by itself: unusual tensors, values of torch.distributed and of NumPy.

The recorder calls these functions with its own hooks off and turns an exception into null and a line in the error log.
"""

import json
import zlib
from contextlib import nullcontext
from typing import Any, Optional

import torch

from .. import _core
from . import odd_files

try:
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError:  # before torch 2.1
    _disable_current_modes = nullcontext

# Inside vmap and grad of torch.func even detach() wraps what it returns.
_disable_transforms = getattr(torch._C, "_DisableFuncTorch", nullcontext)

_MAX_WRAPPERS = 32


def describe_tensor(tensor: torch.Tensor, key: Any = None, file: Optional[str] = None) -> str:
    """JSON of a tensor that is not plain memory of this machine; `file` names, without ending, where it is saved."""
    with _disable_current_modes(), _disable_transforms(), torch.no_grad():
        return json.dumps(_tensor(tensor, file), indent=1)


def describe(value: Any, key: Any = None, file: Optional[str] = None) -> str:
    """JSON of a value that is neither a tensor nor made of Python's own types; null when it has no form in a dump."""
    return json.dumps(_value(value, key, file), indent=1)


# ---- tensors ------------------------------------------------------------------------------------------------------------


def _tensor(tensor: torch.Tensor, file: Optional[str] = None) -> dict:
    kind = _kind_of(tensor)
    plain = _unwrapped(tensor, kind)
    shape = tensor.shape if _is_sparse(plain) else plain.shape
    statistics = _statistics(plain)
    item = {"type": kind, "dtype": str(tensor.dtype), "shape": [int(n) for n in shape]}
    item.update(zip(("Max", "Min", "Mean", "Norm"), statistics[:4]))
    item["requires_grad"] = bool(tensor.requires_grad)
    if kind == "torch.distributed.tensor.DTensor":
        item.update(_placement(tensor))
    name = odd_files.save_tensor(plain, file) if file else None
    if name:
        item["data_name"] = name
    if statistics[4] is not None:
        item["md5"] = statistics[4]
    return item


def _functorch(name: str, tensor: torch.Tensor) -> bool:
    test = getattr(getattr(torch._C, "_functorch", None), name, None)
    return bool(test and test(tensor))


def _kind_of(tensor: torch.Tensor) -> str:
    """The type as dumps name it."""
    for cls in type(tensor).__mro__:
        known = _SUBCLASSES.get(f"{cls.__module__}.{cls.__qualname__}")
        if known:
            return known
    if _functorch("is_batchedtensor", tensor):
        return "torch._C._functorch.BatchedTensor"
    if _functorch("is_gradtrackingtensor", tensor):
        return "torch._C._functorch.GradTrackingTensor"
    return "torch.Tensor"


_SUBCLASSES = {
    "torch.distributed.tensor.DTensor": "torch.distributed.tensor.DTensor",
    "torch.distributed._tensor.api.DTensor": "torch.distributed.tensor.DTensor",
    "torch._subclasses.fake_tensor.FakeTensor": "torch._subclasses.fake_tensor.FakeTensor",
    "torch.distributed._functional_collectives.AsyncCollectiveTensor": (
        "torch.distributed._functional_collectives.AsyncCollectiveTensor"
    ),
    "torch.nested._internal.nested_tensor.NestedTensor": "torch.nested._internal.nested_tensor.NestedTensor",
}
_WITHOUT_DATA = ("FakeTensor", "AsyncCollectiveTensor")


def _unwrapped(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """The tensor whose shape and statistics stand for this one."""
    if kind.endswith("DTensor"):
        return tensor.to_local()
    if kind.endswith(_WITHOUT_DATA):
        return tensor
    for _ in range(_MAX_WRAPPERS):
        if not (_functorch("is_batchedtensor", tensor) or _functorch("is_gradtrackingtensor", tensor)):
            break
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if getattr(tensor, "is_nested", False):
        return tensor.values()
    return tensor


def _is_sparse(tensor: torch.Tensor) -> bool:
    return tensor.layout is not torch.strided and tensor.layout is not getattr(torch, "_mkldnn", None)


_NOTHING = (None,) * 5


def _statistics(tensor: torch.Tensor) -> tuple:
    """Max, Min, Mean, Norm and checksum; None for what has no elements to look at."""
    if tensor.is_meta or type(tensor).__name__ in _WITHOUT_DATA:
        return _NOTHING
    plain = tensor.detach()
    if _is_sparse(plain):
        plain = plain._values() if plain.layout is torch.sparse_coo else plain.values()
    if plain.is_quantized:
        plain = plain.dequantize()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if not odd_files.has_memory(plain):
        return _NOTHING
    return _core.statistics_of(odd_files.readable(plain))


def _placement(tensor: Any) -> dict:
    placements = []
    for placement in tensor.placements:
        if placement.is_shard():
            placements.append({"Shard": {"dim": placement.dim}})
        elif placement.is_replicate():
            placements.append({"Replicate": {}})
        elif placement.is_partial():
            placements.append({"Partial": {"reduce_op": placement.reduce_op}})
    return {"device_mesh": tensor.device_mesh.mesh.tolist(), "placements": placements}


# ---- other values -------------------------------------------------------------------------------------------------------

_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
    torch.preserve_format: "preserve_format",
}


def _value(value: Any, key: Any, file: Optional[str] = None) -> Any:
    if key in ("dtype", "output_dtype") and isinstance(value, (str, int, torch.dtype)):
        return {"type": "torch.dtype", "value": str(value)}
    if key == "device" and isinstance(value, (str, int, torch.device)):
        return {"type": "torch.device", "value": value if isinstance(value, (str, int)) else str(value)}
    if isinstance(value, slice):
        return {"type": "slice", "value": [_as_int(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"type": "ellipsis", "value": "..."}
    if isinstance(value, torch.Size):
        return {"type": "torch.Size", "value": [int(n) for n in value]}
    if isinstance(value, torch.memory_format):
        return {"type": "torch.memory_format", "format": _MEMORY_FORMATS.get(value)}
    special = _numpy_value(value, file) or _distributed_value(value, file)
    if special is not None:
        return special
    for plain in (bool, int, float, str):  # their subclasses: enums, numbers of other libraries
        if isinstance(value, plain):
            return {"type": type(value).__name__, "value": plain(value)}
    return None


def _as_int(value: Any) -> Optional[int]:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _numpy_value(value: Any, file: Optional[str] = None) -> Optional[dict]:
    if not type(value).__module__.startswith("numpy"):
        return None
    import numpy as np

    if isinstance(value, np.generic):
        number = value.item()
        return {"type": type(value).__name__, "value": None if isinstance(number, (complex, bytes)) else number}
    if not isinstance(value, np.ndarray):
        return None
    item = {"type": "numpy.ndarray", "dtype": str(value.dtype), "shape": list(value.shape)}
    item.update(dict.fromkeys(("Max", "Min", "Mean", "Norm")))
    if value.size and value.dtype.kind in "biuf":
        item["Max"], item["Min"] = value.max().item(), value.min().item()
        item["Mean"] = value.mean(dtype=np.float64).item()
        item["Norm"] = float(np.linalg.norm(value.astype(np.float64).ravel()))
    name = odd_files.save_array(value, file) if file else None
    if name:
        item["data_name"] = name
    return item


def _distributed_value(value: Any, file: Optional[str] = None) -> Optional[dict]:
    dist = torch.distributed
    if not dist.is_available():
        return None
    if isinstance(value, dist.ProcessGroup):
        ranks = dist.get_process_group_ranks(value)
        return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": _group_id(ranks)}
    if isinstance(value, dist.P2POp):
        group = value.group or dist.distributed_c10d._get_default_group()
        return {
            "class_type": "torch.distributed.P2POp",
            "tensor": _tensor(value.tensor, f"{file}.tensor" if file else None),
            "op": value.op.__name__,
            "peer": value.peer,
            "tag": value.tag,
            "group_id": _group_id(dist.get_process_group_ranks(group)),
        }
    if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    return None


def _group_id(ranks: list) -> str:
    return f"{zlib.crc32(str(ranks).encode()):08x}"

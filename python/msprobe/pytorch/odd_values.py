"""Values the recorder cannot read by itself: unusual tensors, values of torch.distributed and of NumPy, objects.

The recorder calls these functions with its own hooks off and turns an exception into null and a line in the error log.
Nothing here changes a value, consumes an iterator or calls a method that a user's class defines: attributes are read.
"""

import json
import weakref
import zlib
from contextlib import nullcontext
from typing import Any, NamedTuple, Optional

import torch

from .._capture import slices
from .._capture.other_values import MAX_TEXT, OtherValues, class_path, plain_int
from .._compat import distributed_module
from . import odd_files

try:
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError:  # before torch 2.1
    _disable_current_modes = nullcontext

# Inside vmap and grad of torch.func even detach() wraps what it returns.
_disable_transforms = getattr(torch._C, "_DisableFuncTorch", nullcontext)
# Subclasses with a __torch_dispatch__ of their own would run it.
_disable_dispatch = getattr(torch._C, "_DisableTorchDispatch", nullcontext)

_MAX_WRAPPERS = 32
_MAX_MESHES = 64
_meshes: dict = {}  # id -> weak reference to a mesh, its ranks


class TensorDescription(NamedTuple):
    """What is recorded of a tensor that is not plain memory. The recorder reads the members by their names."""

    type: str  # class
    dtype: str
    shape: tuple
    requires_grad: bool
    extra: str  # further members, as JSON text without braces
    plain: Optional[torch.Tensor]  # whose values stand for it
    file: Optional[str]  # where it was saved


def describe_tensor(tensor: torch.Tensor, file: Optional[str] = None) -> TensorDescription:
    """Describes a tensor that is not plain memory. `file` is the name to save it under, without suffix."""
    with _disable_current_modes(), _disable_transforms(), _disable_dispatch(), torch.no_grad():
        return _tensor(tensor, file)


def describe(value: Any, key: Any = None, file: Optional[str] = None) -> Any:
    """Describes a value that is neither a tensor nor one of Python's own containers.

    Returns JSON text; or a tuple of keys and their JSON text or tensor; or a list or dict that stands for the value.
    """
    said = _distributed_value(value) or _jagged_value(value)
    return said if said is not None else json.dumps(_value(value, key, file), indent=1)


# ---- tensors ------------------------------------------------------------------------------------------------------------


def _tensor(tensor: torch.Tensor, file: Optional[str]) -> TensorDescription:
    kind = _kind_of(tensor)
    local = _unwrapped(tensor, kind)
    if local.layout is torch.strided and kind not in (_FAKE, _ASYNC, _MASKED):
        local = _part_of(local)
    shape = tensor.shape if _is_sparse(local) or kind == _MASKED else local.shape
    extra = ""
    if kind == _DTENSOR:
        extra = json.dumps(_placement(tensor), indent=1)[3:-2]
    sizes = tuple(_as_int(n) or 0 for n in shape)
    plain, saved = _plain(local), None
    if file and plain is not None:
        as_it_is = _is_sparse(local) or local.is_quantized
        saved = odd_files.save_tensor(local if as_it_is else plain, file)
    return TensorDescription(kind, str(tensor.dtype), sizes, bool(tensor.requires_grad), extra, plain, saved)


def _part_of(tensor: torch.Tensor) -> torch.Tensor:
    parts = slices.parts_of(tensor.shape)
    return tensor[tuple(parts)] if any(part != slice(None) for part in parts) else tensor


_DTENSOR = "torch.distributed.tensor.DTensor"
_FAKE = "torch._subclasses.fake_tensor.FakeTensor"
_ASYNC = "torch.distributed._functional_collectives.AsyncCollectiveTensor"
_NESTED = "torch.nested._internal.nested_tensor.NestedTensor"
_MASKED = "torch.masked.maskedtensor.core.MaskedTensor"
_CLASSES = {
    "torch.distributed.tensor.DTensor": _DTENSOR,
    "torch.distributed._tensor.api.DTensor": _DTENSOR,
    **{name: name for name in (_FAKE, _ASYNC, _NESTED, _MASKED)},
}


def _functorch(name: str, tensor: torch.Tensor) -> bool:
    test = getattr(getattr(torch._C, "_functorch", None), name, None)
    return bool(test and test(tensor))


def _is_functional(tensor: torch.Tensor) -> bool:
    """Whether it stands for another one inside torch.func.functionalize()."""
    test = getattr(torch, "_is_functional_tensor", None)
    return bool(test and test(tensor))


def _kind_of(tensor: torch.Tensor) -> str:
    """Returns the type as dumps name it."""
    for cls in type(tensor).__mro__:
        known = _CLASSES.get(class_path(cls))
        if known:
            return known
    if _functorch("is_batchedtensor", tensor):
        return "torch._C._functorch.BatchedTensor"
    if _functorch("is_gradtrackingtensor", tensor):
        return "torch._C._functorch.GradTrackingTensor"
    return "torch.Tensor"


def _unwrapped(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """Returns the tensor whose shape and statistics represent this one."""
    if kind == _DTENSOR:
        return tensor._local_tensor
    if kind in (_FAKE, _ASYNC, _MASKED):
        return tensor
    if _is_functional(tensor):
        torch._sync(tensor)  # operators in place that wait
        return torch._from_functional_tensor(tensor)
    for _ in range(_MAX_WRAPPERS):
        if not (_functorch("is_batchedtensor", tensor) or _functorch("is_gradtrackingtensor", tensor)):
            break
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if kind == _NESTED:
        return tensor._values
    if getattr(tensor, "is_nested", False):
        return tensor.values()
    return tensor


def _is_sparse(tensor: torch.Tensor) -> bool:
    return tensor.layout not in (torch.strided, getattr(torch, "jagged", None), getattr(torch, "_mkldnn", None))


def _plain(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """Returns the elements as plain strided memory on their device; None if there are none to look at."""
    kind = _kind_of(tensor)
    if kind == _FAKE or tensor.is_meta:
        return None
    if kind == _ASYNC:  # waiting for it is the user's
        return _plain(tensor.elem) if tensor.completed else None
    if kind == _MASKED:
        data, mask = _plain(tensor._masked_data), _plain(tensor._masked_mask)
        return None if data is None or mask is None else data[mask]
    plain = tensor.detach()
    if _is_sparse(plain):
        plain = plain._values() if plain.layout is torch.sparse_coo else plain.values()
    if plain.is_quantized:
        plain = plain.dequantize()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if not odd_files.has_memory(plain):
        return None
    plain = plain.resolve_neg().resolve_conj()
    return plain if type(plain) is torch.Tensor else plain.as_subclass(torch.Tensor)


def _placement(tensor: Any) -> dict:
    placements = []
    for placement in tensor.placements:
        if placement.is_shard():
            placements.append({"Shard": {"dim": placement.dim}})
        elif placement.is_replicate():
            placements.append({"Replicate": {}})
        elif placement.is_partial():
            placements.append({"Partial": {"reduce_op": placement.reduce_op}})
        else:
            placements.append({type(placement).__name__: {}})
    return {"device_mesh": _ranks_of(tensor.device_mesh), "placements": placements}


def _ranks_of(mesh: Any) -> list:
    """Lists the ranks of a mesh. PyTorch computes them each time that it is asked, which takes longer than all else here."""
    known, ranks = _meshes.get(id(mesh), (None, None))
    if known is None or known() is not mesh:
        ranks = mesh.mesh.tolist()
        if len(_meshes) >= _MAX_MESHES:
            _meshes.clear()
        _meshes[id(mesh)] = weakref.ref(mesh), ranks
    return ranks


# ---- other values -------------------------------------------------------------------------------------------------------

_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
    torch.preserve_format: "preserve_format",
}


def _value(value: Any, key: Any, file: Optional[str]) -> Any:
    key = key if type(key) is str else None
    if key in ("dtype", "output_dtype") and type(value) in (str, int):
        return {"type": "torch.dtype", "value": str(value)}
    if key == "device" and type(value) in (str, int):
        return {"type": "torch.device", "value": value}
    if isinstance(value, torch.Size):
        return {"type": "torch.Size", "value": [_as_int(n) for n in value]}
    if isinstance(value, torch.memory_format):
        return {"type": "torch.memory_format", "format": _MEMORY_FORMATS.get(value)}
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):  # to evaluate one would specialise the graph
        return {"type": f"torch.{type(value).__name__}", "value": str(value.node.expr)[:MAX_TEXT]}
    if type(value) is torch.Generator:
        return {"type": "torch.Generator", "value": str(value.device)}
    return _OTHERS.describe(value, file) or {"type": class_path(type(value))}


def _as_int(value: Any) -> Optional[int]:
    if isinstance(value, torch.SymInt):
        hint = getattr(value.node, "_hint", None)
        return hint if type(hint) is int else None
    if isinstance(value, torch.Tensor):  # an index in a tensor; reading one of a device would wait for it
        plain = type(value) is torch.Tensor and value.is_cpu and value.numel() == 1
        return int(value) if plain else None
    return plain_int(value)


_OTHERS = OtherValues(
    odd_files.save_array,
    _as_int,
    texts={torch.layout: "torch.layout", torch.finfo: "", torch.iinfo: ""},
    members=(torch.dtype, torch.device),
)


# ---- values of libraries ------------------------------------------------------------------------------------------------


def _distributed_value(value: Any) -> Any:
    dist = distributed_module()
    if not dist.is_available():
        return None
    if isinstance(value, dist.ProcessGroup):
        ranks = dist.get_process_group_ranks(value)
        return json.dumps(
            {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": _group_id(ranks)},
            indent=1,
        )
    if isinstance(value, dist.P2POp):
        group = value.group or dist.distributed_c10d._get_default_group()
        members = {
            "class_type": "torch.distributed.P2POp",
            "tensor": value.tensor,
            "op": value.op.__name__,
            "peer": value.peer,
            "tag": value.tag,
            "group_id": _group_id(dist.get_process_group_ranks(group)),
        }
        return tuple(
            part
            for key, item in members.items()
            for part in (key, item if isinstance(item, torch.Tensor) else json.dumps(item))
        )
    if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        return json.dumps({"type": "torch.distributed.ReduceOp", "value": str(value)}, indent=1)
    return None


def _group_id(ranks: list) -> str:
    return f"{zlib.crc32(str(ranks).encode()):08x}"


_JAGGED = {
    "JaggedTensor": ("_values", "_weights", "_lengths", "_offsets"),
    "KeyedJaggedTensor": ("_keys", "_values", "_weights", "_lengths", "_offsets"),
    "KeyedTensor": ("_keys", "_values", "_length_per_key"),
}


def _jagged_value(value: Any) -> Optional[dict]:
    """Describes torchrec values as an object of the tensors they consist of."""
    for cls in type(value).__mro__:
        if cls.__name__ in _JAGGED and cls.__module__.startswith("torchrec"):
            parts = {name[1:]: getattr(value, name, None) for name in _JAGGED[cls.__name__]}
            return {name: part for name, part in parts.items() if part is not None}
    return None

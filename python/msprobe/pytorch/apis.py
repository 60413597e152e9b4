"""Which functions of PyTorch are recorded at levels L1 and mix.

The list is derived from the installed PyTorch, so that it follows its version: every public function that computes with
tensors or moves them is recorded; questions about a tensor, conversions to Python, bare constructors and the internals of
single back ends are not. Only the outermost recorded call of a thread makes an entry, so a name more or less in this list
changes which entries a dump has. The `*_UNRECORDED` sets therefore name functions that would fit the rules but that dumps
have never contained; comparing against earlier dumps depends on leaving them out.
"""

import importlib
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

CORE, FOCUS, LOW = "CORE", "FOCUS", "LOW"


class Api(NamedTuple):
    """One function to record: entries are called `{prefix}.{name}.N.forward`; `getattr(owner, attr)` is the function.

    in_place is False when the same object also serves an operator that is not recorded (Tensor.neg is Tensor.__neg__):
    then the attribute of the owner has to be exchanged, not the object.
    """

    prefix: str
    name: str
    owner: Any
    attr: str
    risk: str
    in_place: bool = True


def _words(text: str) -> frozenset:
    return frozenset(text.split())


def _operator_names() -> frozenset:
    """The operator methods of Tensor, as the data model of Python spells them."""
    binary = "add sub mul div truediv floordiv mod pow matmul and or xor lshift rshift".split()
    names = {f"__{op}__" for op in binary}
    names |= {f"__i{op}__" for op in binary if op not in ("matmul", "truediv")}
    # The other reflected operators are Python functions that call a recorded function, which makes the entry.
    names |= {f"__r{op}__" for op in "add mul mod or pow sub xor".split()}
    names |= {f"__{op}__" for op in "eq ne lt le gt ge".split()}
    names |= {"__setitem__", "__bool__", "__nonzero__"}
    # __idiv__ is one object with __itruediv__, which is what `x /= y` runs and what makes no entry.
    return frozenset(names - {"__idiv__"})


_OPERATORS = _operator_names()

# ---- torch.nn.functional ------------------------------------------------------------------------------------------------

_FUNCTIONAL_MODULES = _words("torch.nn.functional torch._jit_internal torch._C._nn torch._C._VariableFunctions torch")
_FUNCTIONAL_HELPERS = _words(
    "assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary "
    "has_torch_function_variadic"
)
_FUNCTIONAL_UNRECORDED = _words(
    "grouped_mm linear_cross_entropy native_channel_shuffle rms_norm scaled_grouped_mm scaled_mm"
)

# ---- torch.Tensor -------------------------------------------------------------------------------------------------------

_TENSOR_PREFIXES = ("is_", "new_", "sparse_", "to_", "register_", "storage", "q_per_")
_TENSOR_QUERIES = _words(
    "ccol_indices col_indices const_data_ptr crow_indices data_ptr dense_dim dim dim_order element_size get_device "
    "has_names indices int_repr ndimension nelement numel q_scale qscheme row_indices size type untyped_storage values"
)
_TENSOR_PLUMBING = _words(
    "apply_ as_subclass backward coalesce cpu cuda dequantize detach detach_ hpu ipu item module_load mtia new pin_memory "
    "record_stream refine_names reinforce rename rename_ requires_grad_ resize_as_sparse_ retain_grad set_ share_memory_ "
    "tolist xpu"
)
_TENSOR_UNRECORDED = _words(
    "as_strided as_strided_ as_strided_scatter cdouble chalf clone conj conj_physical_ contiguous copy_ cross hash_tensor "
    "index index_reduce index_reduce_ istft nonzero_static positive put random_ resize resize_as resolve_conj "
    "scatter_reduce scatter_reduce_ select_scatter slice_inverse subtract_ swapaxes_ trace uniform_ view zero_"
)
_TENSOR_LEFT_OUT = _TENSOR_QUERIES | _TENSOR_PLUMBING | _TENSOR_UNRECORDED

# ---- torch --------------------------------------------------------------------------------------------------------------

_TORCH_PREFIXES = tuple(
    "are_ autocast_ cudnn_ empty fake_quantize_ fbgemm_ from fused_ get_ import_ init_ is_ miopen_ mkldnn_ parse_ q_ quantize_ "
    "quantized_ rand rnn_ set_ sparse_ sym_ unify_".split()
)
_TORCH_SUFFIXES = ("_copy", "_like")
# Names the prefixes and suffixes above would leave out.
_TORCH_KEPT = _words("full_like index_copy narrow_copy sparse_coo_tensor")
_TORCH_PRIVATE_KEPT = _words(
    "_adaptive_avg_pool2d _add_relu _add_relu_ _aminmax _batch_norm_impl_index _convolution _foreach_norm _fused_adamw_ "
    "_softmax_backward_data"
)
_TORCH_PLUMBING = _words(
    "as_tensor asarray can_cast clear_autocast_cache dequantize detach detach_ fork int_repr merge_type_from_type_comment "
    "numel ones promote_types resize_as_sparse_ result_type tensor to_dlpack wait zeros"
)
_TORCH_UNRECORDED = _words(
    "adjoint allclose as_strided as_strided_ as_strided_scatter batch_norm bitwise_left_shift bitwise_right_shift complex "
    "conj conj_physical conj_physical_ corrcoef fill gradient hash_tensor imag index_reduce isreal native_channel_shuffle "
    "native_dropout nonzero_static orgqr ormqr positive put resolve_conj rms_norm scatter_reduce segment_reduce "
    "select_scatter slice_inverse slice_scatter trace trapezoid view_as_complex view_as_real zero_"
)
_TORCH_LEFT_OUT = _TORCH_PLUMBING | _TORCH_UNRECORDED
_TORCH_PYTHON_MODULES = _words("torch.functional torch._linalg_utils")
_TORCH_PYTHON_UNRECORDED = _words("broadcast_shapes lu meshgrid unique unravel_index")
_LINALG_UNRECORDED = _words("cholesky eig eigh eigvals eigvalsh ldl_solve lu_solve solve_triangular tensorinv")

# ---- torch._VF, torch.distributed ---------------------------------------------------------------------------------------

_VF_NAMES = ("lstm",)
_DISTRIBUTED_STEMS = ("all_", "reduce", "_all_gather_base", "_reduce_scatter_base", "batch_isend_irecv")
_DISTRIBUTED_PLAIN = _words("broadcast gather irecv isend recv scatter send")
_DISTRIBUTED_SUFFIXES_OUT = ("_object", "_coalesced", "_multigpu")

# ---- torch_npu ----------------------------------------------------------------------------------------------------------

_NPU_OTHERS = _words("fast_gelu gather_pa_kv_cache matmul_checksum one_ scatter_update scatter_update_")

# ---- risk ---------------------------------------------------------------------------------------------------------------

_CORE_STEMS = ("conv1d", "conv2d", "conv3d", "conv_", "convolution", "_convolution", "batch_norm_")
_CORE_NAMES = _words(
    "matmul __matmul__ mm bmm mv addmm addmm_ addbmm addbmm_ baddbmm baddbmm_ addmv addmv_ addr addr_ chain_matmul multi_dot "
    "vecdot linear bilinear batch_norm instance_norm layer_norm group_norm local_response_norm _batch_norm_impl_index "
    "embedding embedding_bag multi_head_attention_forward scaled_dot_product_attention _fused_adam_ _fused_adamw_ gather "
    "scatter"
)
_CORE_PREFIXES = _words("Distributed NPU MindSpeed")
_LOW_SHAPE = _words(
    "align_as align_to atleast_1d atleast_2d atleast_3d expand expand_as flatten moveaxis movedim permute ravel repeat "
    "repeat_interleave reshape reshape_as squeeze stride swapaxes swapdims tile transpose unflatten unfold unsqueeze view "
    "view_as"
)
_LOW_JOIN_AND_SPLIT = _words(
    "cat chunk column_stack concat concatenate dsplit dstack hsplit hstack row_stack split split_with_sizes stack "
    "tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit vstack"
)
_LOW_CAST = _words("__bool__ bfloat16 bool byte cfloat char double float half int long numpy to type_as")
_LOW_CREATE = _words(
    "arange clone diag diag_embed diagflat empty empty_like eye full full_like linspace logspace ones ones_like tril "
    "tril_indices triu triu_indices zeros zeros_like"
)
_LOW_NAMES = _LOW_SHAPE | _LOW_JOIN_AND_SPLIT | _LOW_CAST | _LOW_CREATE

_WELL_KNOWN_PREFIXES = {
    "torch": "Torch",
    "torch.Tensor": "Tensor",
    "torch._VF": "VF",
    "torch.distributed": "Distributed",
    "torch.linalg": "Torch",
    "torch.nn.functional": "Functional",
    "torch_npu": "NPU",
    "mindspeed.ops": "MindSpeed",
}


def risk_of(prefix: str, name: str) -> str:
    """CORE: products of matrices, convolutions, norms, embeddings, communication. LOW: moves and casts elements only."""
    if prefix in _CORE_PREFIXES or name in _CORE_NAMES or name.startswith(_CORE_STEMS):
        return CORE
    return LOW if name in _LOW_NAMES else FOCUS


def hooked_apis(
    torch: Any,
    extra: Optional[Mapping[str, Sequence[str]]] = None,
    leave_out: Iterable[str] = (),
) -> list[Api]:
    """All functions to record. Each function object occurs once, under the first of the names it has in this order.

    extra: {module path: [function, ...]} of the user, e.g. {"torch.Tensor": ["__getitem__"]}; wins over the rules.
    leave_out: names such as "gelu" (under every prefix) or "Functional.gelu" not to record.
    """
    unwanted = frozenset(leave_out)
    twins = _unrecorded_operators(torch.Tensor)
    result: list[Api] = []
    seen = set()
    for prefix, name, owner, attr in [*_extra(torch, extra or {}), *_derived(torch)]:
        if name in unwanted or f"{prefix}.{name}" in unwanted:
            continue
        # The object stays alive in its owner, so its address is a safe key.
        key = id(getattr(owner, attr))
        if key not in seen:
            seen.add(key)
            in_place = owner is not torch.Tensor or key not in twins or attr.startswith("__")
            result.append(Api(prefix, name, owner, attr, risk_of(prefix, name), in_place))
    return result


def _unrecorded_operators(tensor: type) -> frozenset:
    names = (n for n in dir(tensor) if n.startswith("__") and n not in _OPERATORS)
    return frozenset(id(getattr(tensor, n)) for n in names)


def missing_extra(torch: Any, extra: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the user's own list that cannot be recorded, so that they can be reported."""
    found = {(path, attr) for path, attr, _ in _resolved_extra(torch, extra)}
    return [f"{path}.{attr}" for path, names in extra.items() for attr in names if (path, attr) not in found]


def _derived(torch: Any) -> Iterable[tuple[str, str, Any, str]]:
    functional = torch.nn.functional
    yield from (("Functional", n, functional, n) for n in _functional_names(functional))
    yield from (("Tensor", n, torch.Tensor, n) for n in _tensor_names(torch.Tensor))
    # torch._VF.lstm is torch.lstm; nn.LSTM uses the former, and nobody the latter.
    yield from (("VF", n, torch._VF, n) for n in _VF_NAMES if callable(getattr(torch._VF, n, None)))
    yield from (("Torch", n, torch, n) for n in _torch_names(torch))
    yield from (("Torch", n, torch.linalg, n) for n in _linalg_names(torch.linalg))
    distributed = getattr(torch, "distributed", None)  # this file is read without its package, too
    if distributed is not None and distributed.is_available():
        yield from (("Distributed", n, distributed, n) for n in _distributed_names(distributed))


def extension_apis(torch: Any) -> Iterable[tuple[str, str, Any, str]]:
    """Functions of torch_npu and of mindspeed.ops, as far as these have been imported."""
    npu = sys.modules.get("torch_npu")
    for space in (npu, getattr(npu, "atb", None)):
        for name, value in list(vars(space).items()) if space is not None and hasattr(space, "__dict__") else ():
            if callable(value) and not isinstance(value, type) and _is_npu_name(name):
                yield ("NPU", name, *_place(torch, space, name, value))
    distributed = sys.modules.get("torch_npu.distributed")
    for name in ("isend", "irecv"):
        if type(getattr(distributed, name, None)) is types.FunctionType:
            yield "Distributed", name, distributed, name
    for path in [path for path in sys.modules if path.startswith("mindspeed.ops.")]:
        for name, value in list(vars(sys.modules[path]).items()):
            if type(value) is types.FunctionType and name.startswith("npu_") and value.__module__ == path:
                yield "MindSpeed", name, sys.modules[path], name


def _is_npu_name(name: str) -> bool:
    return name.startswith(("npu_", "_npu_")) or name in _NPU_OTHERS


def _place(torch: Any, owner: Any, name: str, value: Any) -> tuple[Any, str]:
    """Newer extensions show operators of torch.ops: the object stays, the function it calls is its attribute."""
    packet = getattr(getattr(torch, "_ops", None), "OpOverloadPacket", None)
    return (value, "_op") if packet is not None and isinstance(value, packet) else (owner, name)


def _functional_names(functional: Any) -> Iterable[str]:
    left_out = _FUNCTIONAL_HELPERS | _FUNCTIONAL_UNRECORDED
    for name, value in vars(functional).items():
        if name.startswith("_") or name in left_out:
            continue
        if isinstance(value, types.BuiltinFunctionType):
            yield name
        elif isinstance(value, types.FunctionType) and value.__module__ in _FUNCTIONAL_MODULES:
            yield name


def _tensor_names(tensor: type) -> Iterable[str]:
    for name in dir(tensor):
        if name.startswith("_"):
            wanted = name in _OPERATORS
        else:
            wanted = name not in _TENSOR_LEFT_OUT and not name.startswith(_TENSOR_PREFIXES)
        if wanted and isinstance(getattr(tensor, name), _METHOD_TYPES):
            yield name


_METHOD_TYPES = (types.MethodDescriptorType, types.FunctionType, types.WrapperDescriptorType)


def _torch_names(torch: Any) -> Iterable[str]:
    for name, value in vars(torch).items():
        # seed_all(is_enhanced=True) puts a Python function in front of the random ones.
        value = getattr(value, "msprobe_original", value) if type(value) is types.FunctionType else value
        if isinstance(value, types.BuiltinFunctionType):
            # A loop of torch/__init__.py of 2.0 to 2.2 left its variable there, with a function that has a name of its own.
            own_name = value.__name__ == name or vars(torch).get(value.__name__) is not value
            if own_name and _is_torch_builtin_recorded(name):
                yield name
        elif isinstance(value, types.FunctionType) and value.__module__ in _TORCH_PYTHON_MODULES:
            if not name.startswith("_") and name not in _TORCH_PYTHON_UNRECORDED:
                yield name


def _is_torch_builtin_recorded(name: str) -> bool:
    if name.startswith("_"):
        return name in _TORCH_PRIVATE_KEPT
    if name in _TORCH_KEPT:
        return True
    return not (name in _TORCH_LEFT_OUT or name.startswith(_TORCH_PREFIXES) or name.endswith(_TORCH_SUFFIXES))


def _linalg_names(linalg: Any) -> Iterable[str]:
    for name, value in vars(linalg).items():
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("_") and name not in _LINALG_UNRECORDED:
            yield name


def _distributed_names(distributed: Any) -> Iterable[str]:
    for name, value in vars(distributed).items():
        # type(), not isinstance(): some values here warn when their attributes are touched.
        if type(value) is not types.FunctionType:
            continue
        collective = name.startswith(_DISTRIBUTED_STEMS) and not name.endswith(_DISTRIBUTED_SUFFIXES_OUT)
        if collective or name in _DISTRIBUTED_PLAIN:
            yield name


def _extra(torch: Any, extra: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, str, Any, str]]:
    for path, attr, owner in _resolved_extra(torch, extra):
        yield _WELL_KNOWN_PREFIXES.get(path, path), attr, owner, attr


def _resolved_extra(torch: Any, extra: Mapping[str, Sequence[str]]) -> list[tuple[str, str, Any]]:
    owners: dict[str, Any] = {path: _resolve(torch, path) for path in extra}
    return [(path, n, owners[path]) for path, names in extra.items() for n in names if _can_call(owners[path], n)]


def _can_call(owner: Any, name: str) -> bool:
    return owner is not None and callable(getattr(owner, name, None))


def _resolve(torch: Any, path: str) -> Any:
    """The module or class at a dotted path; None when it does not exist here."""
    if path == "torch" or path.startswith("torch."):
        owner, rest = torch, path.split(".")[1:]
    else:
        parts = path.split(".")
        owner, rest = None, parts
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            owner = sys.modules.get(name) or _import(name)
            if owner is not None:
                rest = parts[end:]
                break
    for part in rest:
        owner = getattr(owner, part, None)
    return owner


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None

"""Which functions of MindSpore are recorded at levels L1 and mix.

As for PyTorch, the list is derived from the installed MindSpore: every public function of the modules below that computes
with tensors or moves them is recorded under the module's prefix. Only the outermost recorded call of a thread makes an
entry, so a name more or less changes which entries a dump has; the `*_UNRECORDED` sets name functions that would fit the
rules but that dumps have never contained. `custom_apis` of the configuration adds them where they are wanted.

A function that two modules share (mint.exp is ops.exp) is recorded under the name by which it was called. So what is
exchanged while a step is recorded is the attribute of the module, for which an object in C stands that is equal to the
function, has its attributes and is compiled by ms.jit as the function is.
"""

import importlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

FOCUS = "FOCUS"


class Api(NamedTuple):
    """One function to record: entries are called `{prefix}.{name}.N.forward`; `getattr(owner, attr)` is the function."""

    prefix: str
    name: str
    owner: Any
    attr: str


def _words(text: str) -> frozenset:
    return frozenset(text.split())


# ---- mindspore.ops ------------------------------------------------------------------------------------------------------

_OPS_MODULES = frozenset(
    f"mindspore.ops.{path}"
    for path in (
        *(f"function.{part}_func" for part in "array clip image linalg math nn parameter random spectral".split()),
        *("auto_generate.gen_ops_def", "composite.math_ops", "functional_overload"),
        "operations.manually_defined.ops_def",
    )
)
_OPS_PREFIXES = tuple(
    "fft fused_ hfft ifft ihfft incre_ irfft is_ matrix_ moe_ nsa_ prompt_ rfft sparse_ tensor_".split()
)
_OPS_SUFFIXES = ("_attention", "_ext")
# Names the prefixes above would leave out.
_OPS_KEPT = _words(
    "is_complex is_nonzero is_tensor matrix_band_part matrix_diag matrix_diag_part matrix_set_diag matrix_solve "
    "sparse_segment_mean tensor_dot tensor_scatter_add tensor_scatter_div tensor_scatter_elements tensor_scatter_max "
    "tensor_scatter_min tensor_scatter_mul tensor_scatter_sub tensor_split"
)
_OPS_UNRECORDED = _words(
    "adaptive_max_pool3d add_layer_norm add_rms_norm all_gather_matmul bernoulli_ bidense bucketize cartesian_prod "
    "cholesky_inverse clamp_ conv3d_transpose conv_transpose2d det eigvals erfinv_ expand_as exponential_ fills "
    "floor_divide fmin fractional_max_pool2d inplace_sigmoid lgamma lightning_indexer log_matrix_determinant "
    "logcumsumexp lstsq matmul_reduce_scatter mirror_pad multi_scale_deformable_attn_function nanmedian nanquantile "
    "normal_ poisson put_ quantile random_ ring_attention_update rotated_iou scalar_to_array soft_margin_loss "
    "soft_shrink softplus stft swiglu take tanh_ top_k type_as uniform_ vecdot vector_norm view_as zero_"
)

# ---- mindspore.Tensor ---------------------------------------------------------------------------------------------------

_TENSOR_PREFIXES = tuple("assign_ data_ flush_ init_ is_ matrix_ new_ offload set_ storage to_ unsorted_".split())
_TENSOR_KEPT = _words("add_ div_ is_complex is_signed new_ones new_zeros sub_")
_TENSOR_UNRECORDED = _words(
    "adjoint allclose aminmax approximate_equal arctan2 argmax_with_value argmin_with_value argwhere asnumpy astype "
    "bitwise_left_shift bitwise_not bitwise_right_shift cauchy cholesky_inverse choose chunk clone col2im contiguous "
    "count_nonzero cov det diagonal_scatter dim dot dsplit eigvals eq expand expand_dims fill fill_diagonal fills "
    "floor_divide fmax fmin fold gather gather_nd gcd get_bytes hooks hsplit index inplace_update inv invert item "
    "itemset kthvalue lgamma log_matrix_determinant log_normal logcumsumexp lstsq lu_solve mm move_to mul nanmean "
    "nanmedian nanquantile ndimension numel numpy orgqr outer pin_memory positive ptp quantile random_categorical "
    "register_hook remove_hook repeat reshape_as reverse reverse_sequence roll scatter_add scatter_div scatter_max "
    "scatter_min scatter_mul scatter_sub searchsorted select select_scatter slice_scatter soft_shrink softmax stride "
    "tolist top_k triangular_solve triu type type_as unfold uniform unique unique_with_pad untyped_storage value view_as "
    "vsplit wait_pipeline xdivy"
)
_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        "abs add and bool eq ge gt iadd ifloordiv imatmul imod imul isub le lt matmul mod mul ne neg or pow radd rmatmul "
        "rmod rmul rpow rsub sub truediv xor"
    ).split()
)

# ---- mindspore.mint -----------------------------------------------------------------------------------------------------

_MINT_PRIVATE = _words("constexpr jit_forbidden_register jit_view_unsupported")
_MINT_UNRECORDED = _words(
    "addbmm addcdiv addcmul addmm addmv addr_ allclose amax amin argsort batch_norm_elemt "
    "batch_norm_gather_stats_with_counts batch_norm_stats bincount bitwise_not cdist cdist_ clip clone conv_tbc "
    "count_nonzero cumprod diag diff dot dstack einsum empty empty_like equal exp2 float_power floor_divide fmod frac "
    "full_like gcd ge hstack imag index_add isinf isnan isneginf kthvalue lerp log10 log2 logaddexp2 logsumexp meshgrid "
    "mm mv nansum not_equal npu_gelu polar randint randint_like randn randn_like randperm ravel real squeeze std "
    "std_mean t take triangular_solve unbind unique_consecutive var var_mean vdot"
)
_MINT_FUNCTIONAL_UNRECORDED = _words(
    "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d avg_pool1d avg_pool3d broadcast_to clamp conv1d conv2d "
    "conv3d cosine_embedding_loss cross_entropy dropout2d elu_ flatten glu hardtanh hardtanh_ inplace_elu inplace_silu "
    "kl_div max_unpool2d nll_loss normalize pixel_shuffle relu6 sigmoid_ silu_func smooth_l1_loss soft_margin_loss "
    "threshold threshold_ upsample"
)

# ---- communication ------------------------------------------------------------------------------------------------------

_COMM_NAMES = _words(
    "all_gather_into_tensor all_reduce all_to_all_single_with_output_shape all_to_all_with_output_shape "
    "batch_isend_irecv broadcast gather_into_tensor irecv isend recv reduce reduce_scatter_tensor scatter_tensor send"
)
_MINT_DISTRIBUTED_NAMES = _words(
    "all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single batch_isend_irecv broadcast gather irecv "
    "isend recv reduce reduce_scatter reduce_scatter_tensor scatter send"
)

_WELL_KNOWN_PREFIXES = {
    "mindspore.Tensor": "Tensor",
    "mindspore.communication.comm_func": "Distributed",
    "mindspore.mint": "Mint",
    "mindspore.mint.distributed": "MintDistributed",
    "mindspore.mint.nn.functional": "MintFunctional",
    "mindspore.ops": "Functional",
}


def hooked_apis(
    mindspore: Any, extra: Optional[Mapping[str, Sequence[str]]] = None, leave_out: Iterable[str] = ()
) -> list[Api]:
    """Lists all functions to record.

    extra: {module path: [function, ...]} of the user, e.g. {"mindspore.ops": ["softplus"]}; beside the rules.
    leave_out: names such as "gelu" (under every prefix) or "Functional.gelu" not to record.
    """
    unwanted = frozenset(leave_out)
    found: dict = {}
    for api in [*_extra(extra or {}), *_derived(mindspore)]:
        if api.name not in unwanted and f"{api.prefix}.{api.name}" not in unwanted:
            found.setdefault((id(api.owner), api.attr), api)
    return list(found.values())


def missing_extra(extra: Mapping[str, Sequence[str]]) -> list[str]:
    """Lists names of the user's own list that cannot be recorded, so that they can be reported."""
    found = {(path, api.attr) for path in extra for api in _extra({path: extra[path]})}
    return [f"{path}.{name}" for path, names in extra.items() for name in names if (path, name) not in found]


def _extra(extra: Mapping[str, Sequence[str]]) -> Iterator[Api]:
    for path, names in extra.items():
        owner = _resolve(path)
        for name in names if owner is not None else ():
            if callable(getattr(owner, name, None)):
                yield Api(_WELL_KNOWN_PREFIXES.get(path, path), name, owner, name)


def _resolve(path: str) -> Any:
    """Returns the module or class at a dotted path, or None."""
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        for part in parts[split:]:
            found = getattr(found, part, None)
        return found
    return None


def _derived(mindspore: Any) -> Iterator[Api]:
    ops, mint = mindspore.ops, importlib.import_module("mindspore.mint")
    functional = importlib.import_module("mindspore.mint.nn.functional")
    for name, value in list(vars(ops).items()):
        if _is_function(name, value) and value.__module__ in _OPS_MODULES and _is_recorded_op(name):
            yield Api("Functional", name, ops, name)
    for name in dir(mindspore.Tensor):
        if _is_recorded_method(name, getattr(mindspore.Tensor, name, None)):
            yield Api("Tensor", name, mindspore.Tensor, name)
    for prefix, owner, unrecorded in (
        ("Mint", mint, _MINT_UNRECORDED | _MINT_PRIVATE),
        ("MintFunctional", functional, _MINT_FUNCTIONAL_UNRECORDED),
    ):
        for name, value in list(vars(owner).items()):
            if _is_function(name, value) and name not in unrecorded and not name.endswith(("_ext", "_op", "_impl")):
                yield Api(prefix, name, owner, name)
    yield from _communication()


def _communication() -> Iterator[Api]:
    for prefix, path, names in (
        ("Distributed", "mindspore.communication.comm_func", _COMM_NAMES),
        ("MintDistributed", "mindspore.mint.distributed", _MINT_DISTRIBUTED_NAMES),
    ):
        owner = sys.modules.get(path) or _resolve(path)
        for name in sorted(names) if owner is not None else ():
            if isinstance(getattr(owner, name, None), types.FunctionType):
                yield Api(prefix, name, owner, name)


def _is_function(name: str, value: Any) -> bool:
    return isinstance(value, types.FunctionType) and not name.startswith("_")


def _is_recorded_op(name: str) -> bool:
    if name in _OPS_KEPT:
        return True
    return not (name in _OPS_UNRECORDED or name.startswith(_OPS_PREFIXES) or name.endswith(_OPS_SUFFIXES))


def _is_recorded_method(name: str, value: Any) -> bool:
    if not isinstance(value, (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return False
    if name.startswith("_"):
        return name in _OPERATORS
    if name in _TENSOR_KEPT:
        return True
    return not (name in _TENSOR_UNRECORDED or name.startswith(_TENSOR_PREFIXES) or name.endswith("_"))

"""The truth where float64 is the dtype: a part of the process of acc_check (the modules _replay and _calls are there already).

A call is made with tensors whose values are numpy's long double: 64 bits of mantissa on x86-64, 113 on AArch64, 11 and 60 more than float64.
What torch would run as kernels, forward and backward, is computed by numpy from a short list of functions; all others are taken apart into these
by torch's own decompositions. A function that is not among them has no truth, which is said; nothing is guessed.
"""

import math
import operator
import platform

import _compat
import _replay
from _calls import Pass, parts_of
from _replay import REFUSALS, Refused

torch = np = None  # set by the process; numpy when it is needed

MOST_PRODUCTS = 200_000_000  # of a matrix product: numpy has no library for them
MOST_CALLS = 100_000  # of functions that mpmath computes one by one
DIGITS = 30

UFUNCS = {
    n: n
    for n in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt floor ceil trunc sign maximum minimum hypot fmod".split()
}
UFUNCS |= {f"a{n}": f"arc{n}" for n in "sin cos tan sinh cosh tanh".split()}
UFUNCS |= {"neg": "negative", "abs": "absolute", "atan2": "arctan2", "mul": "multiply", "round": "rint", "sgn": "sign"}
UFUNCS |= {"fmax": "fmax", "fmin": "fmin", "copysign": "copysign", "square": "square", "reciprocal": "reciprocal"}
UFUNCS |= {"remainder": "mod"}
COMPARISONS = {
    "gt": "greater",
    "lt": "less",
    "ge": "greater_equal",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
}
COMPARISONS |= {"isnan": "isnan", "isinf": "isinf", "signbit": "signbit"}
PRECISE = {"erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "loggamma", "digamma": "digamma"}
# What only moves elements: done to the numbers of the places.
MOVES = frozenset(
    "view _unsafe_view reshape expand permute transpose t unsqueeze squeeze slice select alias detach clone flip roll repeat as_strided diagonal "
    "index_select gather index unfold split split_with_sizes unbind tril triu constant_pad_nd narrow lift_fresh movedim chunk "
    "transpose_copy view_copy expand_copy slice_backward select_backward diagonal_backward contiguous view_of broadcast_in_dim "
    "_reshape_alias unsafe_split broadcast_to rot90 take masked_select pixel_shuffle pixel_unshuffle channel_shuffle".split()
)


def start():
    """Imports numpy. Refused where long double is no wider than float64."""
    global np
    try:
        import numpy
    except ImportError:
        raise Refused("no truth beyond float64: numpy is missing") from None
    if numpy.finfo(numpy.longdouble).nmant < 63:
        raise Refused(f"no truth beyond float64: long double is no wider on {platform.machine()}")
    np = numpy


def value_of(x):
    """The numbers of an argument, in long double if they are floating-point."""
    if isinstance(x, torch.Tensor):
        if hasattr(x, "extended"):
            return x.extended
        array = x.detach().cpu()
        array = array.double() if array.is_floating_point() else array
        return array.numpy().astype(np.longdouble) if array.is_floating_point() else array.numpy()
    return np.longdouble(x) if isinstance(x, float) else x


def tensor_class():
    """The class of such tensors: the class itself needs torch."""

    class Extended(torch.Tensor):
        @staticmethod
        def __new__(cls, array, requires_grad=False):
            return torch.Tensor._make_wrapper_subclass(
                cls, tuple(array.shape), dtype=torch.float64, requires_grad=requires_grad
            )

        def __init__(self, array, requires_grad=False):
            self.extended, self.shared = array, False

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return Rules(cls).run(function, args, kwargs or {})

    return Extended


class Rules:
    """What stands for the kernels of torch."""

    def __init__(self, made):
        self._made = made

    def run(self, function, args, kwargs):
        """Computes a kernel."""
        schema = function._schema
        name = schema.name.partition("::")[2]
        if any(returned.alias_info is not None and returned.alias_info.is_write for returned in schema.returns):
            return self._in_place(function, name, args, kwargs)
        if name in MOVES:
            return self._move(function, args, kwargs)
        rule = getattr(self, f"_{name.lstrip('_')}_", None)
        if rule is not None:
            return self._wrapped(rule(*args, **kwargs))
        found = self._elementwise(name, args)
        if found is not None:
            return self._wrapped(found)
        decomposed = torch._decomp.decomposition_table.get(function)
        if decomposed is None and torch._C._dispatch_has_kernel_for_dispatch_key(
            function.name(), "CompositeImplicitAutograd"
        ):
            decomposed = function.decompose
        if decomposed is None:
            raise Refused(f"no truth beyond float64: no rule for {schema.name}")
        return decomposed(*args, **kwargs)

    def _in_place(self, function, name, args, kwargs):
        """Through the function that writes nothing. What shares its memory with others is not written: they would not see it."""
        target = args[0] if args else None
        packet = getattr(torch.ops.aten, name[:-1], None) if name.endswith("_") else None
        overload = getattr(packet, function._overloadname, None)
        if overload is None or not hasattr(target, "extended") or target.shared:
            raise Refused(f"no truth beyond float64: {function._schema.name} writes in place")
        found = self.run(overload, args, kwargs)
        target.extended = np.broadcast_to(value_of(found), target.extended.shape).astype(np.longdouble)
        return target

    def _wrapped(self, found):
        if isinstance(found, (tuple, list)):
            return type(found)(self._wrapped(part) for part in found)
        if isinstance(found, np.longdouble):
            found = np.asarray(found)
        if not isinstance(found, np.ndarray):
            return torch.from_numpy(np.asarray(found)) if isinstance(found, (np.bool_, np.integer)) else found
        return (
            self._made(found)
            if found.dtype == np.longdouble
            else torch.from_numpy(np.ascontiguousarray(found).reshape(found.shape))
        )

    def _move(self, function, args, kwargs):
        """The same movement of the numbers of the places; 0 is the place of a zero that comes in."""
        source = args[0]
        value = value_of(source)
        if function._schema.name.endswith("constant_pad_nd") and len(args) > 2 and args[2] != 0:
            raise Refused("no truth beyond float64: padding with a number")
        places = torch.arange(1, value.size + 1).reshape(value.shape)
        rest = [torch.as_tensor(value_of(a)) if hasattr(a, "extended") else a for a in args[1:]]
        if any(hasattr(a, "extended") for a in args[1:]):
            raise Refused(f"no truth beyond float64: no rule for {function._schema.name}")
        flat = np.concatenate([np.zeros(1, np.longdouble), value.reshape(-1)])

        copies = function._schema.returns and function._schema.returns[0].alias_info is None
        source.shared = source.shared or not copies

        def taken(index):
            made = self._made(flat[index.numpy()].reshape(tuple(index.shape)))
            made.shared = not copies
            return made

        moved = function(places, *rest, **{k: v for k, v in kwargs.items() if k != "memory_format"})
        return type(moved)(taken(part) for part in moved) if isinstance(moved, (tuple, list)) else taken(moved)

    def _elementwise(self, name, args):
        with np.errstate(all="ignore"):
            if name in UFUNCS and len(args) == getattr(np, UFUNCS[name]).nin:
                return getattr(np, UFUNCS[name])(*map(value_of, args))
            if name in COMPARISONS:
                return getattr(np, COMPARISONS[name])(*map(value_of, args))
            if name in PRECISE and len(args) == 1:
                return precise(PRECISE[name], value_of(args[0]))
        return None

    # Arithmetic, with the factor that torch's sums have.

    def _add_(self, a, b, alpha=1):
        return value_of(a) + value_of(alpha) * value_of(b)

    def _sub_(self, a, b, alpha=1):
        return value_of(a) - value_of(alpha) * value_of(b)

    def _rsub_(self, a, b, alpha=1):
        return value_of(b) - value_of(alpha) * value_of(a)

    def _div_(self, a, b, rounding_mode=None):
        with np.errstate(all="ignore"):
            quotient = value_of(a) / value_of(b)
            if rounding_mode is not None:
                raise Refused("no truth beyond float64: a division that is rounded")
        return quotient

    def _pow_(self, a, b):
        with np.errstate(all="ignore"):
            return np.power(value_of(a), np.longdouble(value_of(b)) if not isinstance(b, torch.Tensor) else value_of(b))

    def _rsqrt_(self, a):
        with np.errstate(all="ignore"):
            return 1 / np.sqrt(value_of(a))

    def _sigmoid_(self, a):
        e = np.exp(-np.abs(value_of(a)))
        return np.where(value_of(a) >= 0, 1 / (1 + e), e / (1 + e))

    def _relu_(self, a):
        return np.maximum(value_of(a), np.longdouble(0))

    def _clamp_(self, a, min=None, max=None):
        out = value_of(a)
        out = out if min is None else np.maximum(out, value_of(min))
        return out if max is None else np.minimum(out, value_of(max))

    def _where_(self, condition, a, b):
        return np.where(value_of(condition), value_of(a), value_of(b)).astype(np.longdouble)

    def _masked_fill_(self, a, mask, fill):
        return np.where(value_of(mask), value_of(fill), value_of(a)).astype(np.longdouble)

    # Sums.

    @staticmethod
    def _axes(dim, array):
        return (
            None
            if dim is None or (isinstance(dim, (list, tuple)) and not dim)
            else tuple(dim)
            if isinstance(dim, (list, tuple))
            else dim
        )

    def _sum_(self, a, dim=None, keepdim=False, dtype=None):
        return np.sum(value_of(a), axis=self._axes(dim, a), keepdims=keepdim, dtype=np.longdouble)

    def _mean_(self, a, dim=None, keepdim=False, dtype=None):
        return np.mean(value_of(a), axis=self._axes(dim, a), keepdims=keepdim, dtype=np.longdouble)

    def _amax_(self, a, dim=(), keepdim=False):
        return np.max(value_of(a), axis=self._axes(dim, a), keepdims=keepdim)

    def _amin_(self, a, dim=(), keepdim=False):
        return np.min(value_of(a), axis=self._axes(dim, a), keepdims=keepdim)

    def _cumsum_(self, a, dim, dtype=None):
        return np.cumsum(value_of(a), axis=dim, dtype=np.longdouble)

    def _max_(self, a, dim=None, keepdim=False, choose="argmax"):
        array = value_of(a)
        if dim is None or isinstance(dim, torch.Tensor):
            raise Refused("no truth beyond float64: a choice in two tensors")
        if not array.ndim:
            return array, np.zeros((), np.int64)
        places = np.expand_dims(getattr(np, choose)(array, axis=dim), dim)
        found = np.take_along_axis(array, places, dim), places
        return found if keepdim else tuple(part.squeeze(dim) for part in found)

    def _min_(self, a, dim=None, keepdim=False):
        return self._max_(a, dim, keepdim, "argmin")

    def _sort_(self, a, dim=-1, descending=False, stable=True):
        array = value_of(a)
        places = np.argsort(-array if descending else array, axis=dim, kind="stable")
        return np.take_along_axis(array, places, dim), places

    def _topk_(self, a, k, dim=-1, largest=True, sorted=True):
        values, places = self._sort_(a, dim=dim, descending=largest)
        return np.take(values, range(k), dim), np.take(places, range(k), dim)

    def _prod_(self, a, dim=None, keepdim=False, dtype=None):
        return np.prod(value_of(a), axis=self._axes(dim, a), keepdims=keepdim, dtype=np.longdouble)

    def _var_(self, a, dim=None, correction=None, keepdim=False, unbiased=True):
        array = value_of(a)
        axes = self._axes(dim, a)
        count = array.size if axes is None else np.prod([array.shape[axis] for axis in np.atleast_1d(axes)])
        apart = array - np.mean(array, axis=axes, keepdims=True)
        less = np.longdouble(correction if correction is not None else 1)
        return np.sum(apart * apart, axis=axes, keepdims=keepdim) / np.maximum(count - less, 0)

    # Products.

    def _mm_(self, a, b):
        a, b = value_of(a), value_of(b)
        if a.size * b.shape[-1] > MOST_PRODUCTS:
            raise Refused("no truth beyond float64: the matrices are too large")
        return np.matmul(a, b)

    _bmm_ = _mm_

    def _mv_(self, a, b):
        return np.matmul(value_of(a), value_of(b))

    _dot_ = _mv_

    def _addmm_(self, c, a, b, beta=1, alpha=1):
        return value_of(beta) * value_of(c) + value_of(alpha) * self._mm_(a, b)

    _baddbmm_ = _addmm_

    # Copies, and what is new.

    def _cat_(self, parts, dim=0):
        arrays = [value_of(part) for part in parts if part.numel()]
        return np.concatenate(arrays, axis=dim).astype(np.longdouble)

    def _stack_(self, parts, dim=0):
        return np.stack([value_of(part) for part in parts], axis=dim)

    def _to_copy_(self, a, dtype=None, **kwargs):
        if dtype not in (None, torch.float64):
            raise Refused(f"no truth beyond float64: it converts to {dtype}")
        return value_of(a)

    def _convert_element_type_(self, a, dtype):
        return self._to_copy_(a, dtype)

    def _real_(self, a):
        return value_of(a)

    def _scatter_(self, a, dim, index, source):
        return self._scattered(a, dim, index, source, False)

    def _scatter_add_(self, a, dim, index, source):
        return self._scattered(a, dim, index, source, True)

    @staticmethod
    def _scattered(a, dim, index, source, adds):
        out, index = value_of(a).copy(), value_of(index)
        if not index.ndim:
            return np.where(True, value_of(source), out).astype(np.longdouble)
        places = list(np.indices(index.shape))
        source = value_of(source)
        source = source[tuple(slice(n) for n in index.shape)] if np.ndim(source) else source
        places[dim] = index
        if adds:
            np.add.at(out, tuple(places), source)
        else:
            out[tuple(places)] = source
        return out

    def _index_put_(self, a, indices, values, accumulate=False):
        out = value_of(a).copy()
        places = tuple(slice(None) if index is None else value_of(index) for index in indices)
        if accumulate:
            np.add.at(out, places, value_of(values))
        else:
            out[places] = value_of(values)
        return out

    _unsafe_index_put_ = _index_put_

    def _full_like_(self, a, fill, **kwargs):
        return np.full(tuple(a.shape), np.longdouble(fill))

    def _zeros_like_(self, a, **kwargs):
        return np.zeros(tuple(a.shape), np.longdouble)

    def _ones_like_(self, a, **kwargs):
        return np.ones(tuple(a.shape), np.longdouble)

    def _new_zeros_(self, a, size, **kwargs):
        return np.zeros(tuple(size), np.longdouble)

    def _new_empty_strided_(self, a, size, stride, **kwargs):
        return np.zeros(tuple(size), np.longdouble)

    def _local_scalar_dense_(self, a):
        raise Refused("no truth beyond float64: it looks at a value")


def precise(name, array):
    """A function of mpmath of each element."""
    if array.size > MOST_CALLS:
        raise Refused("no truth beyond float64: too many elements for mpmath")
    import mpmath

    out = np.empty(array.size, np.longdouble)
    with mpmath.workdps(DIGITS):
        function = operator.attrgetter(name)(mpmath)
        for place, x in enumerate(array.reshape(-1)):
            if not np.isfinite(x):
                raise Refused("no truth beyond float64: infinities and NaN in a function of mpmath")
            high = float(x)
            found = function(mpmath.mpf(high) + mpmath.mpf(float(x - np.longdouble(high))))
            found = mpmath.re(found)
            first = float(found)
            out[place] = np.longdouble(first) + np.longdouble(float(found - mpmath.mpf(first)))
    return out.reshape(array.shape)


def widener():
    """A function that makes such a tensor of one of floating-point numbers, for the passes of _calls."""
    made = tensor_class()

    def widen(tensor):
        if tensor.is_complex():
            raise Refused("no truth beyond float64: complex numbers")
        return made(value_of(tensor)) if tensor.is_floating_point() else tensor.clone()

    return widen


def halves_of(value):
    """(high, low) of a result: its float64, and what that lacks; (the tensor, None) of others."""
    array = getattr(value, "extended", None)
    if array is None:
        return value, None
    high = array.astype(np.float64)
    with np.errstate(all="ignore"):
        low = np.where(np.isfinite(high), array - high.astype(np.longdouble), 0).astype(np.float64)
    return torch.from_numpy(np.ascontiguousarray(high).reshape(array.shape)), torch.from_numpy(
        np.ascontiguousarray(low).reshape(array.shape)
    )


def measure(ours, high, low):
    """As `measure` of _replay, with what the truth lacks in float64."""
    error = _replay.measure(ours, high)
    there = torch.isfinite(ours) & torch.isfinite(high)
    if math.isinf(error) or not there.any():
        return error
    apart, size = ((ours - high) - low)[there], high[there]
    info = torch.finfo(torch.float64)
    return max(
        (apart.abs().max() / size.abs().max().clamp(min=info.smallest_normal)).item(),
        (apart.norm() / size.norm().clamp(min=info.smallest_normal)).item(),
    )


class Beyond:
    """The truth of a call beyond float64, of the results that have this dtype.

    `why` says why there is none. On other devices than the CPU, torch's own float64 there is is still another kernel, and stays the truth then.
    """

    def __init__(self, call, results, backward, device):
        self._kept, self.why, self._device = {}, "", device
        floats = [t.dtype for t in results if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())]
        if not floats or floats[0] not in (torch.float64, torch.complex128) or call.draws:
            return
        self.why = self._made(call, backward)
        if self.why and backward:
            again = self._made(call, False)  # the forward pass alone
            self.why = self.why if not again else again

    def _made(self, call, backward):
        try:
            start()
            with _compat.attention_of_products():
                made = Pass(call, widener(), backward, wide=True)
        except Refused as refusal:
            return str(refusal)
        except REFUSALS as error:
            text = str(error).strip().split("\n", 1)[0][:100]
            return f"no truth beyond float64: {type(error).__name__}: {text}"
        sides = {"forward": parts_of(made.result)}
        if backward:
            sides["backward"] = [made.grads.get(key) for key in call.tensors]
        for side, values in sides.items():
            for number, value in enumerate(values):
                if hasattr(value, "extended"):
                    self._kept[side, number] = halves_of(value)
        return ""

    def high(self, side, number, truth):
        """The truth in float64."""
        return self._kept.get((side, number), (truth, None))[0]

    def low(self, side, number):
        """What it lacks; None where nothing is known."""
        return self._kept.get((side, number), (None, None))[1]

    def of(self, side, number, ours):
        """What the truth of a result lacks, and why there is no truth."""
        low = self.low(side, number)
        wide = ours.dtype in (torch.float64, torch.complex128)
        return low, (
            self.why or "no truth beyond float64"
        ) if wide and low is None and self._device.type == "cpu" else ""

"""What rounding after each step of a call changes: a part of the process of acc_check (the module _replay is there already).

Many functions of torch, and most gradients, are several kernels one after the other, and each writes its result in the dtype of the call. The
call is made in float64 once more, and the result of every kernel is rounded to that dtype, up or down at random, in several draws. How far the
results of the draws spread is what rounding of the steps explains. A step whose result has no place in the dtype is named: what comes after it
is NaN or infinite whatever the kernels are like.
"""

import importlib

import _replay

torch = None  # set by the process

DRAWS = 8  # the first of them rounds to nearest
TAIL = 4  # times the root of the mean square of the draws; no rounding is further away
SAFE = 2  # times the largest whole error of the draws
BITS = {2: "int16", 4: "int32"}
MOST_OF_TF32 = 2**-7  # of a result: a rounding is 2^-11, and products add up


def rounded(wide, dtype, generator):
    """Rounds float64 to a dtype; up or down at random, to nearest without a generator."""
    near = wide.to(dtype)
    back = near.double()
    if generator is None or dtype == torch.float64:
        return back
    bits = near.view(getattr(torch, BITS[dtype.itemsize]))
    away = wide.abs() > back.abs()
    other = torch.where(away, bits + 1, bits - 1).view(dtype).double()
    other = torch.where(back == 0, torch.copysign(torch.full_like(wide, _least(dtype)), wide), other)
    turn = torch.randint(0, 2, wide.shape, generator=generator, dtype=torch.int8).bool() & (back != wide)
    return torch.where(turn & ~wide.isnan(), other, back)


def _least(dtype):
    info = torch.finfo(dtype)
    return info.smallest_normal * info.eps


def moved(wide, dtype, generator):
    """As `rounded`; of float64 itself, which has no room for it, moved by one rounding."""
    if wide.is_complex():
        return torch.view_as_complex(moved(torch.view_as_real(wide.resolve_conj()).contiguous(), dtype, generator))
    if dtype == torch.float64 and generator is not None:
        signs = torch.randint(0, 2, wide.shape, generator=generator, dtype=torch.int8)
        return wide * (1 + (signs.double() * 2 - 1) * 2.0**-53)
    return rounded(wide, dtype, generator)


def rounding(dtype, generator):
    """A mode of torch under which every kernel rounds its results to `dtype`.

    Args:
        dtype: A floating-point dtype.
        generator: For rounding at random; None rounds to nearest.

    Returns:
        The mode; `beyond` names the first kernel whose finite result `dtype` cannot hold.
    """
    base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Rounding(base):
        def __init__(self):
            super().__init__()
            self.beyond = ""

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            parts = result if isinstance(result, (tuple, list)) else [result]
            kinds = [returned.alias_info for returned in function._schema.returns]
            kinds += kinds[-1:] * (len(parts) - len(kinds))
            made = [self._step(function, part, kind) for part, kind in zip(parts, kinds)]
            if not isinstance(result, (tuple, list)):
                return made[0] if made else result
            return type(result)(made) if type(result) in (tuple, list) else type(result)(*made)

        def _step(self, function, value, alias):
            wide = isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)
            if not wide or value.layout != torch.strided or (alias is not None and not alias.is_write):
                return value  # a view
            value_of = moved(value.detach(), dtype, generator)
            if not self.beyond and (torch.isfinite(value) & ~torch.isfinite(value_of)).any():
                self.beyond = function._schema.name
            return value_of if alias is None else value.copy_(value_of)

    return Rounding()


class Steps:
    """The draws of one call.

    `run(mode)`: a pass in float64 under a mode of torch, as (results, {key: gradient}).
    """

    def __init__(self, run, dtype):
        self._draws, self.beyond = [], ""
        for number in range(DRAWS):
            mode = rounding(dtype, torch.Generator().manual_seed(number) if number else None)
            self._draws.append(run(mode))
            self.beyond = self.beyond or mode.beyond

    def _at(self, side, place, truth):
        found = [draw[1].get(place) if side == "backward" else draw[0][place] for draw in self._draws]
        right = [t.detach() for t in found if isinstance(t, torch.Tensor) and t.shape == truth.shape]
        return right if len(right) == len(found) else []

    def whole(self, side, place, truth):
        """The largest error of a whole result, as `relative` measures it, that rounding of the steps explains."""
        return SAFE * max((_replay.relative(t, truth) for t in self._at(side, place, truth)), default=0.0)

    def distance(self, side, place, truth, dtype):
        """The same of each element, beside one ulp of its own value; None where nothing is known."""
        found = self._at(side, place, truth)
        if not found:
            return None
        parts = [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (truth.detach(), *found)]
        truth, draws = parts[0], parts[1:]
        info = torch.finfo(dtype)
        ulp = truth.abs().clamp(min=info.smallest_normal) * info.eps
        squares = sum(((draw - truth).abs() - ulp).clamp(min=0).nan_to_num(0.0, posinf=0.0) ** 2 for draw in draws)
        return TAIL * (squares / len(draws)).sqrt()

    def overflows(self, side, place, ours, truth):
        """Whether every element that is NaN or infinite where the truth is not, is so in a draw, too."""
        found = self._at(side, place, truth)
        off = torch.isfinite(truth) & ~torch.isfinite(ours.to(truth.dtype))
        there = torch.zeros_like(off)
        for draw in found:
            there |= ~torch.isfinite(draw)
        return bool(off.any()) and not (off & ~there).any()


def far(ours, truth, low, ulps, distance):
    """Whether an element is further from the truth, and what it lacks, than its bound."""
    ours, truth = ours.detach().cpu(), truth.detach()
    info = torch.finfo(ours.dtype)
    if ours.is_complex():
        ours, truth = (torch.view_as_real(t.resolve_conj()) for t in (ours, truth.to(torch.complex128)))
    ours, size = ours.double(), truth.abs()
    ulp = torch.exp2(torch.floor(torch.log2(size.clamp(min=info.smallest_normal)))) * info.eps
    bound = ulps * ulp + (0.0 if distance is None else distance)
    there = torch.isfinite(ours) & torch.isfinite(truth)
    apart = ((ours - truth) - (0.0 if low is None else low)).abs()
    return bool(((apart > bound) & there).any()) or bool((torch.isfinite(ours) != torch.isfinite(truth)).any())


class Tf32:
    """The format with 10 bits of mantissa to which a CUDA device rounds float32 before it multiplies, where torch allows it.

    `again` makes the call once more: (results, gradients).
    """

    def __init__(self, device, again):
        self._places = ()
        if device.type == "cuda":
            self._places = [b for b in (torch.backends.cudnn, torch.backends.cuda.matmul) if b.allow_tf32]
        self._again, self._exact = again, None

    def explains(self, side, place, ours, truth):
        """Whether most of the error of a result goes without TF32."""
        if not self._places or ours.dtype is not torch.float32:
            return False
        if self._exact is None:
            places = self._places
            for backend in places:
                backend.allow_tf32 = False
            try:
                self._exact = self._again()
            except (_replay.Refused, *_replay.REFUSALS):
                self._places = ()
                return False
            finally:
                for backend in places:
                    backend.allow_tf32 = True
        exact = self._exact[side == "backward"][place].detach().cpu()
        return _replay.measure(exact, truth) * 8 < _replay.measure(ours, truth) < MOST_OF_TF32

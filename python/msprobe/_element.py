"""How far rounding may move each element of a result: a part of the process of acc_check (the modules before it are there already).

A bound is a number of ulp of the element's own value, plus a distance of its own for each element. Where the distance comes from
is its rule:

exact       nothing is rounded but the result
ulp         an elementary function: measured for each function and dtype (src/lab/ulp_table.def)
condition   a function of each element that was not measured: what one rounding of its inputs changes
saved       a gradient of these: that, and what rounding of saved values changes
terms       a sum: sqrt(K) roundings of the sum of the absolute values of its K terms
spread      everything else: what rounding of the inputs changes, in several random draws
class       a choice: the value that was chosen
"""

import itertools
import math

import _replay
from _replay import SINGLE, TAIL, Refused, terms

torch = None  # set by the process

# Functions that are linear in each of their inputs, with no negative weights: of absolute values they give the sum of the
# absolute values of the terms.
SUMS = frozenset(
    "linear mm bmm dot vdot mv addmm addmv addr baddbmm einsum tensordot inner outer ger matmul conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d bilinear chain_matmul multi_dot addbmm kron sum mean nansum nanmean cumsum trace index_add "
    "scatter_add avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
    "rmatmul imatmul".split()
)
BINARY = frozenset(
    "add sub mul div true_divide multiply subtract divide truediv pow iadd isub imul idiv itruediv".split()
)
# Of these the sums of halves are known to be in float32, forward; what others round in between is not known.
FUSED = frozenset(
    "linear mm bmm dot mv addmm baddbmm einsum matmul conv1d conv2d conv3d sum mean nansum nanmean rmatmul imatmul".split()
)
# They are left of a logarithm of a sum that is about one.
LOGARITHMS = frozenset("log_softmax logsoftmax cross_entropy crossentropyloss logsumexp".split())
# Places and weights are computed in the dtype, and an error of a place is none of the values around it.
NO_RULE = frozenset("interpolate upsample grid_sample grid_sampler grid_sampler_2d grid_sampler_3d ctc_loss".split())
ACCUMULATE = frozenset("index_put put scatter index_put_impl".split())  # copies, unless they are asked to add
MOST_PATTERNS = 8  # of signs
DRAWS = 4
CONDITION_STEPS, SAVED_ULPS, SPREAD_STEPS = 2, 4, 8


def base_of(name):
    """A function's name without what marks operators and writing in place."""
    return name.strip("_")


def is_wide(value):
    """Whether this is a tensor of floating-point or complex numbers."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


class Saved:
    """Moves what the forward pass saves for the backward pass, as rounding it to `dtype` does; inputs are exact in it."""

    def __init__(self, dtype, unit, sign):
        self._dtype, self._unit, self._sign = dtype, unit, sign
        self._generator = torch.Generator().manual_seed(3)

    def __enter__(self):
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
        return self._hooks.__enter__()

    def __exit__(self, *error):
        return self._hooks.__exit__(*error)

    def _pack(self, tensor):
        if not tensor.is_floating_point() or torch.equal(tensor.to(self._dtype).to(tensor.dtype), tensor):
            return tensor
        tensor = tensor.detach()
        if self._sign:
            return tensor * (1 + self._sign * self._unit)
        signs = torch.randint(0, 2, tensor.shape, generator=self._generator, dtype=torch.int8)
        return tensor * (1 + self._unit * (2.0 * signs.double() - 1))


class Shake:
    """Widens a tensor and moves its numbers by one unit round-off, up or down, those of complex numbers each."""

    def __init__(self, unit, seed):
        self._unit = unit
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, tensor):
        wide = _replay.widen(tensor)
        if wide.is_complex():
            return torch.view_as_complex(self._moved(torch.view_as_real(wide.resolve_conj()).contiguous()))
        return self._moved(wide) if wide.is_floating_point() else wide

    def _moved(self, wide):
        signs = torch.randint(0, 2, wide.shape, generator=self._generator, dtype=torch.int8)
        return wide * (1 + self._unit * (2.0 * signs.double() - 1))


class Bound:
    """What an item says of its elements."""

    def __init__(self, rule, ulps, distance=None, count=1.0, condition=1.0):
        self.rule, self.ulps, self.distance, self.count, self.condition = rule, ulps, distance, count, condition


def distance_of(a, b):
    """|a - b| of two results of a pass, complex ones part by part as they go out."""
    a, b = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (a, b))
    return (a.detach() - b.detach()).abs_()


class ElementBounds:
    """The bounds of one call.

    `run(change, saved)`: a pass in float64 with changed inputs, as (results, {key: gradient}). `truth`: the one without changes.
    `measured`: of the table, [ulp, distance in roundings of the largest input] or None, forward and backward.
    """

    def __init__(self, call, kind, unit, measured, run, truth):
        self._call, self._kind, self._unit, self._run = call, kind, unit, run
        self._measured, self._measured_backward = measured
        self._truth = truth
        self._name = base_of(call.name)
        self._kept = {}
        first = next((t for t in call.tensors.values() if is_wide(t)), None)
        self._dtype = first.dtype if first is not None else torch.float32

    def of(self, side, place, ours, truth):
        """The bound of a result (`place` is its number) or of a gradient (its key); None where no rule says any."""
        bound = None
        for bound in self.growing(side, place, ours, truth):  # noqa: B007
            pass
        return bound

    def growing(self, side, place, ours, truth):
        """Bounds of which each is at least as large as the one before; the last is that of `of`. Each takes passes in float64."""
        if not is_wide(ours) or self._unit == 0 or ours.numel() == 0 or self._name in NO_RULE:
            return
        for bound in self._backward(place, ours, truth) if side == "backward" else self._forward(place, ours, truth):
            if bound is not None and bound.rule in ("condition", "saved", "terms", "spread"):
                # Terms below the normal numbers lose digits, or are flushed to 0.
                bound.distance = bound.distance.add_(torch.finfo(ours.dtype).smallest_normal * bound.count)
            yield bound

    def least(self, side, ours):
        """What is left of the bound without passes: ulp of each element. What is nearer is within it. None where no rule says any."""
        if not is_wide(ours) or self._unit == 0 or ours.numel() == 0 or self._name in NO_RULE:
            return None
        backward = side == "backward"
        if not backward and self._is_copy():
            return Bound("exact", 0.5)
        if self._kind in ("elementwise", "function"):
            measured = self._measured_backward if backward else self._measured
            if backward:
                return Bound("saved", max(SAVED_ULPS, measured[0] if measured else 0), None, 1.0, -1)
            if measured and self._numbers() is not None:
                return Bound("ulp", measured[0])
            return Bound("condition", self._own_ulps(), None, 1.0, -1)
        # The terms of a sum are together no smaller than the sum, and a result moves at least as its own rounding does.
        count, unit = terms(self._call, ours, backward), max(torch.finfo(ours.dtype).eps / 2, self._unit)
        summed = (backward and self._kind == "copy") or self._is_sum()
        fused = not summed or (self._name in FUSED and not backward)
        inner = min(unit, SINGLE) if fused else unit
        more = TAIL * inner * math.sqrt(count) / torch.finfo(ours.dtype).eps
        return Bound("terms" if summed else "spread", (1 if summed else 2) + more, None, count, -1)

    def _is_copy(self):
        return self._kind == "copy" and not (self._name in ACCUMULATE and self._adds())

    def _own_ulps(self):
        return 1 if self._kind == "elementwise" else _replay.FUNCTION_ULPS

    def _forward(self, place, ours, truth):
        unit = max(torch.finfo(ours.dtype).eps / 2, self._unit)
        if self._is_copy():
            yield Bound("exact", 0.5)
        elif self._kind in ("elementwise", "function"):
            yield self._elementwise(place, ours, truth, unit)
        elif self._is_sum():
            yield self._sum(0, place, ours, truth, unit, True)
        else:
            yield from self._spread(0, place, ours, truth, unit)

    def _elementwise(self, place, ours, truth, unit):
        lost = self._lost(ours, unit) if self._measured else None
        if self._measured and self._numbers() is not None:
            return Bound("ulp", self._measured[0], lost)
        moved = None
        for moved in self._moved(0, place, unit):  # noqa: B007
            pass
        if moved is None:
            return None
        distance = CONDITION_STEPS * moved + (0.0 if lost is None else lost)
        return self._made("condition", self._own_ulps(), distance, truth, unit)

    def _backward(self, key, ours, truth):
        unit = max(torch.finfo(ours.dtype).eps / 2, self._unit)
        if self._kind == "copy":
            yield self._sum(1, key, ours, truth, unit, False)
        elif self._kind in ("elementwise", "function"):
            yield from self._gradient(key, ours, truth, unit)
        elif self._is_sum():
            yield self._sum(1, key, ours, truth, unit, True)
        else:
            yield from self._spread(1, key, ours, truth, unit)

    def _gradient(self, key, ours, truth, unit):
        """Of a function of each element: what rounding of inputs and of saved values changes, and of sums over what was broadcast."""
        summed = self._broadcast(key, ours, unit)
        ulps, more = SAVED_ULPS, summed
        if self._measured_backward:
            ulps = max(ulps, self._measured_backward[0])
            lost = self._measured_backward[1] * unit * self._incoming(ours)
            more = None if summed is None else summed + lost
        moved = saved = None
        for moved in self._moved(1, key, unit) if more is not None else ():
            if moved is not None:
                yield self._made("saved", ulps, CONDITION_STEPS * moved + more, truth, unit, partial=True)
        for saved in self._saved(key, unit) if moved is not None else ():
            if saved is not None:
                yield self._made("saved", ulps, CONDITION_STEPS * (moved + saved) + more, truth, unit)
        if saved is None:
            yield None

    def _adds(self):
        values = [*self._call.spec["args"], *self._call.spec["kwargs"].values()]
        return any(v is True or isinstance(v, str) for v in values)

    def _is_sum(self):
        numbers = [*self._call.spec["args"], *self._call.spec["kwargs"].values()]
        negative = any(isinstance(v, float) and v < 0 for v in numbers)
        alpha = [self._call.spec["kwargs"].get(key) for key in ("alpha", "beta")]
        return self._name in SUMS and not negative and not any(isinstance(v, int) and v < 0 for v in alpha)

    def _numbers(self):
        """The numbers among the arguments; None if there are other settings: functions were measured without."""
        args = [v for v in self._call.spec["args"] if not (isinstance(v, dict) and "tensor" in v)]
        plain = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in args)
        binary = len(self._call.spec["args"]) == 2 and self._name in BINARY
        return args if plain and (not args or binary) and not self._call.spec["kwargs"] else None

    def _lost(self, ours, unit):
        """What small results of large arguments may be away."""
        if not self._measured[1]:
            return None
        distance = torch.zeros((), dtype=torch.float64)
        for tensor in self._call.tensors.values():
            if is_wide(tensor):
                size = tensor.detach().abs().double()
                fits = torch.broadcast_shapes(size.shape, ours.shape) == ours.shape
                distance = torch.maximum(distance, size if fits else size.max())
        return self._measured[1] * unit * distance.expand(ours.shape)

    def _incoming(self, ours):
        """The size of the gradients that come in."""
        sizes = [g.detach().abs().double() for g in self._call.gradients.values() if is_wide(g)]
        if len(sizes) == 1 and sizes[0].shape == ours.shape:
            return sizes[0]
        return max((size.max().item() for size in sizes if size.numel()), default=0.0)

    @staticmethod
    def _made(rule, ulps, distance, truth, unit, count=1.0, partial=False):
        """`partial`: of a bound that grows, whose condition is not known yet."""
        if partial:
            return Bound(rule, ulps, distance, count, -1)
        size = truth.detach().abs().double().norm().item()
        condition = distance.norm().item() / (unit * size) if size > 0 else math.inf
        return Bound(rule, ulps, distance, count, condition)

    def _pass(self, name, change, saved=None):
        if name not in self._kept:
            self._kept[name] = self._run(change, saved)
        return self._kept[name]

    @staticmethod
    def _at(passed, which, place):
        value = passed[which].get(place) if which else passed[which][place]
        return value if isinstance(value, torch.Tensor) else None

    def _difference(self, passed, which, place):
        a, b = self._at(passed, which, place), self._at(self._truth, which, place)
        if a is None or b is None or a.shape != b.shape or not is_wide(b):
            return None
        return distance_of(a, b).nan_to_num_(nan=0.0)

    def _moved(self, which, place, unit):
        """The largest change when the inputs move by one rounding, up or down each; yields it as it grows, in the end None if it is not known."""
        wide = [key for key, t in self._call.tensors.items() if is_wide(t)]
        patterns = list(itertools.product((1, -1), repeat=min(len(wide), 3)))[:MOST_PATTERNS]
        moved = None
        for pattern in patterns:
            signs = {id(self._call.tensors[key]): pattern[min(i, len(pattern) - 1)] for i, key in enumerate(wide)}
            passed = self._pass(
                ("move", pattern, unit),
                lambda t, signs=signs: (
                    _replay.widen(t) * (1 + unit * signs[id(t)]) if id(t) in signs else _replay.widen(t)
                ),
            )
            change = self._difference(passed, which, place)
            if change is None:
                yield None
                return
            moved = change if moved is None else torch.maximum(moved, change)
            if pattern != patterns[-1]:
                yield moved
        yield self._moved_by_numbers(which, place, unit, moved)

    def _moved_by_numbers(self, which, place, unit, moved):
        """Adds what rounding of numbers among the arguments changes, such as 0.1."""
        for sign in (1, -1) if self._inexact() else ():
            turned = self._with_numbers(("numbers", sign, unit), lambda v, factor=1 + sign * unit: v * factor)
            change = self._difference(turned, which, place)
            moved = change if moved is None or change is None else moved + change
        return moved

    def _inexact(self):
        """The numbers among the arguments that are no short fractions."""
        spec = self._call.spec
        return [v for v in (*spec["args"], *spec["kwargs"].values()) if isinstance(v, float) and v % 0.125]

    def _with_numbers(self, name, turn):
        """A pass with other numbers among the arguments."""
        spec = self._call.spec

        def turned(v):
            return turn(v) if isinstance(v, float) else v

        self._call.spec = {
            **spec,
            "args": [turned(v) for v in spec["args"]],
            "kwargs": {key: turned(v) for key, v in spec["kwargs"].items()},
        }
        try:
            return self._pass(name, _replay.widen)
        finally:
            self._call.spec = spec

    def shift(self, place, ours, truth):
        """What the truth lacks because the kernel gets the numbers among the arguments in a narrower dtype; None if it does not seem so.

        Which one is not known: the one that fits the whole result best. Errors that fit none of them are errors of the kernel.
        """
        if (
            not self._measured
            or self._kind not in ("elementwise", "function")
            or not self._numbers()
            or not self._inexact()
        ):
            return None
        size, found = truth.abs().clamp(min=torch.finfo(ours.dtype).smallest_normal), []
        for dtype in dict.fromkeys((torch.float64, torch.float32, ours.dtype)):
            made = self._with_numbers(
                ("narrow", dtype), lambda v, dtype=dtype: torch.tensor(v, dtype=dtype).double().item()
            )
            lacks = (self._at(made, 0, place) - truth).nan_to_num(0.0, 0.0, 0.0)
            apart = (((ours.double() - truth) - lacks).abs() / size).nan_to_num(0.0, 0.0, 0.0).max().item()
            found.append((apart, len(found), lacks))
        nearest = min(found, key=lambda entry: entry[:2])
        return nearest[2] if nearest[1] else None

    def _saved(self, key, unit):
        """The largest change when saved values move by one rounding; yields it as it grows."""
        found = None
        for sign in (1, 0):
            passed = self._pass(("saved", sign, unit), _replay.widen, Saved(self._dtype, unit, sign))
            change = self._difference(passed, 1, key)
            if change is None:
                yield None
                return
            found = change if found is None else torch.maximum(found, change)
            yield found

    def _broadcast(self, key, ours, unit):
        """The rounding of the sum over what was broadcast; 0 without one."""
        result = next((t for t in self._truth[0] if is_wide(t)), None)
        count = result.numel() / max(ours.numel(), 1) if result is not None else 1
        if count <= 1:
            return 0.0
        tensors = self._call.tensors
        try:
            full = {k: t.expand(result.shape) if k == key else t for k, t in tensors.items()}
            self._call.tensors = full
            gradient = self._run(_replay.widen, None)[1].get(key)
        except (RuntimeError, Refused):
            return None
        finally:
            self._call.tensors = tensors
        if gradient is None:
            return 0.0
        size = gradient.detach().abs()
        size = (torch.view_as_real(size + 0j).amax(-1) if size.is_complex() else size).sum_to_size(ours.shape)
        inner = min(unit, SINGLE)
        bound = TAIL * (inner * math.sqrt(count) + unit / math.sqrt(count)) * size
        return bound.unsqueeze(-1) if ours.is_complex() else bound

    def _sum(self, which, place, ours, truth, unit, inputs):
        """sqrt(K) roundings of the sum of the absolute values of the K terms."""

        def size_of(tensor):
            wide = _replay.widen(tensor)
            if not is_wide(wide) or (not inputs and any(tensor is t for t in self._call.tensors.values())):
                return wide
            return wide.abs().to(wide.dtype)

        size = self._at(self._pass(("size", inputs), size_of), which, place)
        if size is None or size.shape != truth.shape:
            return None
        size = size.detach().abs().nan_to_num_(nan=0.0, posinf=0.0)
        count = terms(self._call, ours, which == 1)
        if ours.is_complex():
            size = 2 * size.unsqueeze(-1).expand(*size.shape, 2)
        fused = self._name in FUSED and which == 0
        inner = min(unit, SINGLE) if fused else unit
        distance = TAIL * inner * math.sqrt(count) * size
        shown = truth.detach().abs().double().sum().item()
        condition = size.sum().item() / shown if shown > 0 else math.inf
        return Bound("terms", 1, distance, count, max(1.0, condition))

    def _spread(self, which, place, ours, truth, unit):
        """As the bound of the whole result, with what each element moves by itself."""
        size = truth.detach().abs().double()
        size = size.unsqueeze(-1) if truth.is_complex() else size
        inner = min(unit, SINGLE)
        length = terms(self._call, ours, which == 1)
        steps = TAIL * inner * math.sqrt(length) / self._unit
        if which:
            steps += 4
        if self._kind in ("attention", "unknown") or (which and self._kind == "softmax"):
            steps += TAIL * unit * math.sqrt(SPREAD_STEPS) / self._unit
        # What is small beside the others may be what is left of them.
        typical = math.sqrt((size**2).nan_to_num(nan=0.0, posinf=0.0).mean().item())
        if self._name in LOGARITHMS and not which:
            typical = max(typical, 1.0)
        squares = 0.0
        for draw in range(DRAWS):
            jitter = Shake(self._unit, draw + 2)
            saved = Saved(self._dtype, unit, 0) if which else None
            change = self._difference(self._pass(("draw", draw, bool(which)), jitter, saved), which, place)
            if change is None:
                yield None
                return
            squares = squares + change**2
            # Draws that are missing count as no change.
            moved = torch.maximum((squares / DRAWS).sqrt(), self._unit * size)
            distance = steps * moved + TAIL * (unit if which else inner) * typical
            yield self._made("spread", 2, distance, truth, unit, length, partial=draw < DRAWS - 1)

"""The process in which `msprobe acc_check` makes the calls of a dump again: on a device, and in float64 on the CPU.

usage: python _lab.py DEVICE      (descriptor 0 is a socket to the command; the modules that it imports from here are there already)

First a line goes out, {"torch": version, "device": name} or {"error": text}. Then lines come in, {"call": CALL, "arithmetic": kind,
"backward": truth, "dtype": of the recorded result, "random": seed, "measured", "measured_backward":
{dtype: [ulp, share]}} or
{"collective": {"members": [{"rank", "api", "own", "op", "files"} of each], "known": truth}} or {"save": {path: part}}, and
to each a line goes out, {"forward": [ITEM], "backward": [ITEM], "note": text} or {"why": text} or {"saved": [path]}. The bytes of
the tensors follow, of each item those of the device, of the truth and of the bound of each element; they are in the memory of both
where a request names a "part" of it (_channel.py).
"""

import contextlib
import importlib.util
import json
import math
import re
import sys
from functools import partial

import _calls
import _choices
import _collectives
import _draws
import _element
import _extended
import _near
import _recorded
import _replay
import _steps
from _calls import MOST_BYTES, LabCall, LabFunctions, Pass, dtype_of, parts_of, shake
from _channel import channel, leave_at_once
from _near import near_of
from _replay import (
    REFUSALS,
    Jitter,
    Refused,
    bound_memory,
    limit_of,
    measure,
    relative,
    tensors_in,
    terms,
    unit_of,
    widen,
)

torch = None  # imported by main(), which says so where there is none

RECORDED = "recorded"  # in place of a device: the results are those of the dump
HALVES = ("torch.float16", "torch.bfloat16")
BY_DTYPE = ("nextafter",)  # what they compute depends on the dtype, so float64 is no truth
MOST_EXPLAINED = 0.25  # of a result
CANCELS = 0.05  # of a gradient that one rounding of the inputs changes by this much of itself, little is left


class Answer:
    """What goes out: a line, then bytes."""

    def __init__(self):
        self.line, self._blobs = {"forward": [], "backward": [], "note": ""}, []

    def add(self, side, ours, truth, low=None):
        """Appends one result of the device and its truth; `low` is what the truth lacks in float64."""
        self.line[side].append(self._item(ours, truth, low))

    def _item(self, ours, truth, low):
        if isinstance(ours, torch.Tensor) and isinstance(truth, torch.Tensor):
            return self._tensors(ours, truth, low)
        if ours is None or truth is None:
            return {"kind": "none" if ours is truth else "apart"}
        if isinstance(ours, (bool, int, float, str)):
            return {"kind": "value", "type": str(type(ours)), "same": ours == truth}
        if isinstance(ours, (torch.Size, torch.dtype, torch.device)):
            return {"kind": "value", "type": str(type(ours)), "same": ours == truth or not isinstance(ours, torch.Size)}
        return {"kind": "apart", "type": str(type(ours))[:100]}

    def _tensors(self, ours, truth, low):
        ours, truth = ours.detach(), truth.detach()
        item = {"kind": "tensor", "dtype": str(ours.dtype), "shape": list(ours.shape), "truth_shape": list(truth.shape)}
        if ours.is_sparse or ours.layout != torch.strided or ours.is_quantized:
            raise Refused("its result is not a plain tensor")
        if ours.is_complex():
            ours, truth = (
                torch.view_as_real(ours.resolve_conj()),
                torch.view_as_real(truth.to(torch.complex128).resolve_conj()),
            )
        elif ours.is_floating_point():
            truth = truth.to(torch.float64)
        else:
            truth = truth.to(ours.dtype)
        if truth.numel() * 8 > MOST_BYTES:
            raise Refused(f"a result of the shape {item['shape']} is too large")
        for tensor, key in ((ours, "bytes"), (truth, "truth_bytes"), (low, "low_bytes")):
            if tensor is None:
                continue
            data = tensor.cpu().resolve_neg().contiguous().view(-1)
            data = data.view(torch.uint8) if data.numel() else data.to(torch.uint8)
            self._blobs.append((item, data.numpy()))
            item[key] = data.numel()
        return item

    def attach(self, item, key, values):
        """Adds what the elements of a result may be away from the truth, or what the truth lacks."""
        data = values.contiguous().view(-1).view(torch.uint8)
        item[key] = data.numel()
        self._blobs.append((item, data.numpy()))

    def blobs(self):
        """The bytes, those of one item after those of the other."""
        items = [*self.line["forward"], *self.line["backward"]]
        place = {id(item): number for number, item in enumerate(items)}
        return [data for item, data in sorted(self._blobs, key=lambda blob: place[id(blob[0])])]


class Distances:
    """How far results are from the truth, and how far rounding explains, in ulp of their dtypes.

    `passes`: results and gradients of the device, then those in float64. `unit`: the unit round-off of the inputs; `cast`: of an
    autocast. `measured`: of the table of functions. `beyond`: the truth beyond float64.

    A bound grows with each pass in float64 that looks for what rounding changes. No pass is made for a result that is within the bound as it
    is without; `condition` is -1 then. `tf32`: what that format explains.
    """

    def __init__(self, call, kind, unit, passes, cast, measured, beyond, tf32):
        self._tf32 = tf32
        self._call, self._kind, self._unit, self._beyond = call, kind, unit, beyond
        self._passes = passes
        self._backward = bool(passes[0][1])
        self._shaken = self._steps = None
        self._bounds = None if cast else _element.ElementBounds(call, kind, unit, measured, self._run, passes[1])

    def _run(self, change, around):
        with around or contextlib.nullcontext():
            made = Pass(self._call, change, self._backward, wide=True)
        return parts_of(made.result), made.grads

    def add_to(self, answer):
        """Adds "error" and "limit" to the items of which they say something."""
        if self._call.name in BY_DTYPE:
            return
        for number, right in _choices.chosen(self._call, *(part[0] for part in self._passes)).items():
            answer.line["forward"][number] |= {"rule": "class", "error": 0.0 if right else math.inf, "limit": 0.5}
        keys = list(self._call.tensors)
        sides = {"forward": [(number, *pair) for number, pair in enumerate(zip(*(part[0] for part in self._passes)))]}
        if answer.line["backward"]:
            sides["backward"] = [(key, *(part[1].get(key) for part in self._passes)) for key in keys]
        for side, results in sides.items():
            floating = any(isinstance(a, torch.Tensor) and a.is_floating_point() for _, a, _ in results)
            for number, (item, (place, a, b)) in enumerate(zip(answer.line[side], results)):
                same = item["kind"] == "tensor" and a.shape == b.shape and a.numel() > 0
                # Choices between equal values (the indices of topk) tell nothing where the values themselves are there.
                if not same or (floating and not (a.is_floating_point() or a.is_complex())):
                    continue
                ours, truth = a.detach().cpu(), b.detach().cpu()
                low, item_why = self._beyond.of(side, number, ours)
                if item_why:
                    item["unknown"] = item_why
                elif item.get("rule") != "class":
                    self._judge(answer, item, side, place, ours, truth, low)

    def _judge(self, answer, item, side, place, ours, truth, low):
        least = self._bounds.least(side, ours) if self._bounds else None
        near = near_of(self._call, ours, truth, low, self._unit, self._kind, side == "backward")
        if near and (least is None or near.holds(least)):
            self._settle(answer, item, near, least)
            return
        if low is None and least is not None and side == "forward" and ours.is_floating_point():
            low = self._bounds.shift(place, ours, truth)
            if low is not None:
                answer.attach(item, "low_bytes", low)
                near = None
        # The whole is near enough, single elements need more of their bound: as much of it as they do.
        for bound in self._bounds.growing(side, place, ours, truth) if near and self._bounds else ():
            if bound is not None and near.holds(bound):
                self._settle(answer, item, near, bound)
                return
        self._measure(item, ours, truth, low, side, place, self._moved(side, place, truth))
        bound = None
        # Where rounding explains anything in a whole result, it does in its elements.
        if self._bounds and item.get("limit", math.inf) * 2 * unit_of([ours]) < MOST_EXPLAINED:
            bound = self._bounds.of(side, place, ours, truth)
        if wide_and_far(item, bound, ours, truth, low):
            self._by_steps(item, bound, side, place, ours, truth)
        if bound is not None:
            attach(answer, item, bound)

    @staticmethod
    def _settle(answer, item, near, bound):
        item["error"], item["limit"] = near.error, near.limit
        if bound is not None:
            attach(answer, item, bound)

    def _moved(self, side, place, truth):
        """How far one rounding of the inputs moves a result, relatively."""
        if not self._unit or (side == "forward" and self._kind in ("copy", "elementwise")):
            return 0.0
        if side == "backward" and _choices.moves(self._call, self._passes[0][0]):
            return 0.0
        if self._shaken is None:
            self._shaken = self._run(partial(shake, Jitter(self._unit)), None)
        moved = self._shaken[1].get(place) if side == "backward" else self._shaken[0][place]
        return (
            relative(moved.detach(), truth) if isinstance(moved, torch.Tensor) and moved.shape == truth.shape else 0.0
        )

    def _by_steps(self, item, bound, side, place, ours, truth):
        """Of a result that is beyond its bounds: adds what rounding after each step of the call explains."""
        if self._tf32.explains(side, place, ours, truth):
            item["known"] = "its products are rounded to TF32: torch.backends.cudnn.allow_tf32, cuda.matmul.allow_tf32"
            return
        if self._steps is None:
            try:
                self._steps = _steps.Steps(lambda mode: self._run(widen, mode), ours.dtype)
            except (Refused, *REFUSALS):  # what cannot be taken apart has no steps
                self._steps = False
        if not self._steps:
            return
        if math.isinf(item["error"]):
            if self._steps.beyond and self._steps.overflows(side, place, ours, truth):
                item["known"] = f"its step {self._steps.beyond} overflows {str(ours.dtype).rpartition('.')[2]}"
            return
        item["limit"] = max(item["limit"], self._steps.whole(side, place, truth) / (2 * unit_of([ours])))
        more = self._steps.distance(side, place, truth, ours.dtype) if bound is not None else None
        if more is not None and more.any():
            bound.distance = more if bound.distance is None else bound.distance + more
            bound.rule += ", steps"

    def _measure(self, item, ours, truth, low, side, place, moved):
        """`moved`: 0 for the least that rounding explains."""
        wide, backward = ours.is_floating_point() or ours.is_complex(), side == "backward"
        limit = limit_of(self._call, ours, moved, self._unit, self._kind, backward)
        error = measure(ours, truth) if low is None else _extended.measure(ours, truth, low)
        if backward and ours.is_floating_point() and moved > CANCELS:
            limit += self._cancelled(ours, truth, place)
        if math.isinf(error) and limit > 1 and not ours.isnan().any() and not truth.isnan().any():
            item.pop("error", None), item.pop("limit", None)
            return  # so near a pole that rounding decides between a number and infinity
        ulp = 2 * unit_of([ours]) if wide else 1.0
        item["error"], item["limit"] = error / ulp, limit / ulp

    def _cancelled(self, ours, truth, key):
        """The rounding of terms that cancel each other out, relative to what is left of them.

        A gradient that is zero for all inputs (that of a value divided by its own norm) shows no size of its terms: they are as
        large as gradients that come in, times the slope of the results over the input.
        """
        results = [t.abs().max().item() for t in tensors_in(self._passes[1][0]) if t.is_floating_point() and t.numel()]
        given = [g.abs().max().item() for g in self._call.gradients.values() if g.numel()]
        size = self._call.tensors[key].abs().max().item()
        info = torch.finfo(ours.dtype)
        results.append(info.eps * max(t.abs().max().item() for t in self._call.tensors.values() if t.numel()))
        terms_size = max(given, default=0.0) * max(results, default=0.0) / max(size, info.smallest_normal)
        left = max(truth.abs().max().item(), info.smallest_normal)
        return _replay.TAIL * info.eps * math.sqrt(terms(self._call, ours, True)) * terms_size / left


def wide_and_far(item, bound, ours, truth, low):
    """Whether a result of floating-point numbers is further from the truth than its bounds."""
    if "error" not in item or not (ours.is_floating_point() or ours.is_complex()):
        return False
    return item["error"] > item["limit"] or (
        bound is not None and _steps.far(ours, truth, low, bound.ulps, bound.distance)
    )


def attach(answer, item, bound):
    """Adds the bound of the elements to what goes out."""
    item |= {"rule": bound.rule, "ulps": bound.ulps, "terms": bound.count, "condition": bound.condition}
    if bound.distance is not None:
        answer.attach(item, "bound_bytes", bound.distance.to(torch.float32))


class Laboratory:
    """Answers the requests of the command."""

    def __init__(self, device):
        self._functions = LabFunctions()
        self._device = device
        self._last = {}
        self._collectives = _collectives.Collectives()

    def check(self, request):
        """Makes one call on both sides."""
        answer = Answer()
        if "collective" in request:
            results, truths = self._collectives.check(request["collective"], answer, answer.attach)
            self._last = {"forward.output.bench": truths, "forward.output.device": results}
            return answer
        call = LabCall(self._functions, request["call"], request["random"])
        backward = request["backward"] and bool(call.leaves)
        if backward and "out" in call.spec["kwargs"]:
            backward, answer.line["note"] = False, "a function that writes into out= has no backward"
        truth, why = self._truth(call, backward)
        if why:
            backward, answer.line["note"] = False, why
        if "recorded" in request:
            ours = _recorded.RecordedPass(call, request["recorded"], truth, backward)
            cast, backward = ours.cast, backward and bool(ours.grads)
            answer.line["note"] = answer.line["note"] or ours.note
        else:
            ours, cast = self._on_device(call, backward, request["dtype"])
        if call.draws:
            answer.line["draws"] = self._compare_draws(call, ours, truth)
            return answer
        results, truths = parts_of(ours.result), parts_of(truth.result)
        if len(results) != len(truths):
            raise Refused(f"it has {len(results)} results on the device and {len(truths)} in float64")
        beyond = _extended.Beyond(call, results, backward, self._device)
        truths = [beyond.high("forward", number, b) for number, b in enumerate(truths)]
        wide = {key: beyond.high("backward", number, truth.grads.get(key)) for number, key in enumerate(call.tensors)}
        wide = {key: _choices.at_equal(call, results, key, ours.grads.get(key), grad) for key, grad in wide.items()}
        for number, (a, b) in enumerate(zip(results, truths)):
            answer.add("forward", a, b, beyond.low("forward", number))
        if backward:
            for number, key in enumerate(call.tensors):
                answer.add("backward", ours.grads.get(key), wide[key], beyond.low("backward", number))
        unit = max(unit_of((*call.tensors.values(), *call.gradients.values())), cast)
        passes = [(results, ours.grads), (truths, wide if backward else {})]
        first = next((t for t in results if isinstance(t, torch.Tensor)), None)
        measured = [request[key].get(str(getattr(first, "dtype", None))) for key in ("measured", "measured_backward")]

        def again():
            made = self._on_device(call, backward, request["dtype"])[0]
            return parts_of(made.result), made.grads

        tf32 = _steps.Tf32(self._device, again)
        Distances(call, request["arithmetic"], unit, passes, cast, measured, beyond, tf32).add_to(answer)
        self._last = {
            "forward.input": list(call.tensors.values()),
            "forward.output.bench": truths,
            "forward.output.device": results,
            "backward.input": list(call.gradients.values()) if backward else [],
            "backward.output.bench": [t for t in wide.values() if t is not None],
            "backward.output.device": list(ours.grads.values()),
        }
        return answer

    @staticmethod
    def _truth(call, backward):
        """The pass in float64, and why it has no gradients though they were asked for."""
        try:
            return Pass(call, widen, backward, wide=True), ""
        except RuntimeError as error:
            if not backward or not re.search("not implemented|not differentiable", str(error)):
                raise
        return Pass(call, widen, False, wide=True), "torch has no backward of it"

    def _on_device(self, call, backward, recorded):
        def move(tensor):
            return tensor.to(self._device)

        try:
            done = Pass(call, move, backward, wide=False)
        except RuntimeError:
            if recorded not in HALVES:
                raise
            done = None  # types that only autocast brings together
        first = next((t for t in tensors_in(done.result) if t.is_floating_point()), None) if done else None
        if recorded not in HALVES or (first is not None and str(first.dtype) == recorded):
            return done, 0.0
        with torch.autocast(self._device.type, dtype=dtype_of(recorded)):
            return Pass(call, move, backward, wide=False), torch.finfo(dtype_of(recorded)).eps / 2

    def _compare_draws(self, call, ours, truth):
        def draw(number):
            torch.manual_seed(number)
            device = Pass(call, lambda tensor: tensor.to(self._device), False, wide=False)
            torch.manual_seed(-1 - number)
            return parts_of(device.result), parts_of(Pass(call, widen, False, wide=True).result)

        return _draws.compare(call.name, (parts_of(ours.result), parts_of(truth.result)), draw)

    def end(self):
        """Ends what it has started."""
        self._collectives.end()

    def save(self, wanted):
        """Writes the tensors of the last call to files, {prefix of the path: part}."""
        saved = []
        for prefix, part in wanted.items():
            for number, tensor in enumerate(self._last.get(part, ())):
                if isinstance(tensor, torch.Tensor):
                    torch.save(tensor.detach().cpu().contiguous().clone(), f"{prefix}.{number}.pt")
                    saved.append(f"{prefix}.{number}.pt")
        return {"saved": saved}


def pick(name):
    """The device of this name, or of this number on the accelerator that there is."""
    if name == RECORDED:
        return torch.device("cpu")
    if not name.isdigit():
        return torch.device(name)
    if importlib.util.find_spec("torch_npu") is not None:
        importlib.import_module("torch_npu")
        return torch.device("npu", int(name))
    return torch.device("cuda", int(name)) if torch.cuda.is_available() else torch.device("cpu")


def main():
    """Runs the process."""
    stream, say = channel()
    if importlib.util.find_spec("torch") is None:
        say({"error": f"{sys.executable} has no torch, with which ops are called again"})
        return
    global torch
    _calls.keep_freed_memory()
    torch = _calls.import_torch()
    _replay.torch = _calls.torch = _element.torch = _draws.torch = torch
    _recorded.torch = _steps.torch = _extended.torch = _collectives.torch = _choices.torch = _near.torch = torch
    try:
        device = pick(sys.argv[1])
        torch.zeros(1, device=device)
    except REFUSALS as error:
        say({"error": f"torch has no device {sys.argv[1]} here ({str(error).strip().splitlines()[0][:200]})"})
        return
    laboratory = Laboratory(device)
    bound_memory()
    say({"torch": torch.__version__, "device": RECORDED if sys.argv[1] == RECORDED else str(device)})
    for line in stream:
        request = json.loads(line)
        try:
            if "save" in request:
                say(laboratory.save(request["save"]))
                continue
            answer = laboratory.check(request)
        except Refused as refusal:
            say({"why": str(refusal)})
        except REFUSALS as error:
            text = str(error).strip().split("\n", 1)[0][:200]
            say({"why": f"torch refuses the call ({type(error).__name__}: {text})"})
        else:
            say(answer.line, answer.blobs(), request.get("part"))
    laboratory.end()
    leave_at_once()


if __name__ == "__main__":
    main()

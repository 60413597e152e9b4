"""The process in which `msprobe acc_check` makes the calls of a dump again: on a device, and in float64 on the CPU.

usage: python _lab.py DEVICE      (descriptor 0 is a socket to the command; the modules _channel, _replay, _calls, _element, _draws and
_recorded are there already)

First a line goes out, {"torch": version, "device": name} or {"error": text}. Then lines come in, {"call": CALL, "arithmetic": kind,
"backward": truth, "dtype": of the recorded result, "random": seed, "measured", "measured_backward":
{dtype: [ulp, share]}} or {"save": {path: part}}, and
to each a line goes out, {"forward": [ITEM], "backward": [ITEM], "note": text} or {"why": text} or {"saved": [path]}. The bytes of
the tensors follow, of each item those of the device, of the truth and of the bound of each element.
"""

import contextlib
import importlib.util
import json
import math
import re
import sys
from functools import partial

import _calls
import _draws
import _element
import _recorded
import _replay
from _calls import MOST_BYTES, LabCall, LabFunctions, Pass, dtype_of, parts_of, shake
from _channel import channel
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

    def add(self, side, ours, truth):
        """Appends one result of the device and its truth."""
        self.line[side].append(self._item(ours, truth))

    def _item(self, ours, truth):
        if isinstance(ours, torch.Tensor) and isinstance(truth, torch.Tensor):
            return self._tensors(ours, truth)
        if ours is None or truth is None:
            return {"kind": "none" if ours is truth else "apart"}
        if isinstance(ours, (bool, int, float, str)):
            return {"kind": "value", "type": str(type(ours)), "same": ours == truth}
        if isinstance(ours, (torch.Size, torch.dtype, torch.device)):
            return {"kind": "value", "type": str(type(ours)), "same": ours == truth or not isinstance(ours, torch.Size)}
        return {"kind": "apart", "type": str(type(ours))[:100]}

    def _tensors(self, ours, truth):
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
        for tensor, key in ((ours, "bytes"), (truth, "truth_bytes")):
            data = tensor.cpu().resolve_neg().contiguous().view(-1)
            data = data.view(torch.uint8) if data.numel() else data.to(torch.uint8)
            self._blobs.append((item, data.numpy()))
            item[key] = data.numel()
        return item

    def attach(self, item, distance):
        """Adds what the elements of a result may be away from the truth."""
        data = distance.to(torch.float32).contiguous().view(-1).view(torch.uint8)
        item["bound_bytes"] = data.numel()
        self._blobs.append((item, data.numpy()))

    def blobs(self):
        """The bytes, those of one item after those of the other."""
        items = [*self.line["forward"], *self.line["backward"]]
        place = {id(item): number for number, item in enumerate(items)}
        return [data for item, data in sorted(self._blobs, key=lambda blob: place[id(blob[0])])]


class Distances:
    """How far results are from the truth, and how far rounding explains, in ulp of their dtypes.

    `passes`: results and gradients of the device, then those in float64. `unit`: the unit round-off of the inputs; `cast`: of an
    autocast. `measured`: of the table of functions.
    """

    def __init__(self, call, kind, unit, passes, cast, measured):
        self._call, self._kind, self._unit = call, kind, unit
        self._passes = [*passes, passes[-1]]
        backward = bool(passes[0][1])

        def run(change, saved):
            with saved or contextlib.nullcontext():
                made = Pass(call, change, backward, wide=True)
            return parts_of(made.result), made.grads

        if unit and (backward or kind not in ("copy", "elementwise")):
            self._passes[2] = run(partial(shake, Jitter(unit)), None)
        self._bounds = None
        if not cast:
            self._bounds = _element.ElementBounds(call, kind, unit, measured, run, self._passes[1])

    def add_to(self, answer):
        """Adds "error" and "limit" to the items of which they say something."""
        if self._call.name in BY_DTYPE:
            return
        keys = list(self._call.tensors)
        sides = {"forward": (keys, [part[0] for part in self._passes])}
        for number, right in _element.chosen(self._call, *(part[0] for part in self._passes[:2])).items():
            answer.line["forward"][number] |= {"rule": "class", "error": 0.0 if right else math.inf, "limit": 0.5}
        if answer.line["backward"]:
            sides["backward"] = (keys, [[part[1].get(key) for key in keys] for part in self._passes])
        for side, (keys, columns) in sides.items():
            floating = any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in columns[0])
            for number, (item, a, b, c) in enumerate(zip(answer.line[side], *columns)):
                same = item["kind"] == "tensor" and a.shape == b.shape == c.shape and a.numel() > 0
                # Choices between equal values (the indices of topk) tell nothing where the values themselves are there.
                if same and (not floating or a.is_floating_point() or a.is_complex()):
                    three = [t.detach().cpu() for t in (a, b, c)]
                    key = keys[number] if side == "backward" else None
                    if item.get("rule") != "class":
                        self._measure(item, *three, key)
                    # Where rounding explains anything in a whole result, it does in its elements.
                    if self._bounds and item.get("limit", math.inf) * 2 * unit_of([a]) < MOST_EXPLAINED:
                        self._bound(answer, item, side, number if key is None else key, *three[:2])

    def _bound(self, answer, item, side, place, ours, truth):
        bound = self._bounds.of(side, place, ours, truth)
        if bound is not None:
            item |= {"rule": bound.rule, "ulps": bound.ulps, "terms": bound.count, "condition": bound.condition}
            if bound.distance is not None:
                answer.attach(item, bound.distance)

    def _measure(self, item, ours, truth, shaken, key):
        wide = ours.is_floating_point() or ours.is_complex()
        moved = relative(shaken, truth) if wide else 0.0
        limit = limit_of(self._call, ours, moved, self._unit, self._kind, key is not None)
        error = measure(ours, truth)
        if key is not None and ours.is_floating_point() and moved > CANCELS:
            limit += self._cancelled(ours, truth, key)
        if math.isinf(error) and limit > 1 and not ours.isnan().any() and not truth.isnan().any():
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


class Laboratory:
    """Answers the requests of the command."""

    def __init__(self, device):
        self._functions = LabFunctions()
        self._device = device
        self._last = {}

    def check(self, request):
        """Makes one call on both sides."""
        answer = Answer()
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
        for a, b in zip(results, truths):
            answer.add("forward", a, b)
        if backward:
            for key in call.tensors:
                answer.add("backward", ours.grads.get(key), truth.grads.get(key))
        unit = max(unit_of((*call.tensors.values(), *call.gradients.values())), cast)
        passes = [(results, ours.grads), (truths, truth.grads)]
        first = next((t for t in results if isinstance(t, torch.Tensor)), None)
        measured = [request[key].get(str(getattr(first, "dtype", None))) for key in ("measured", "measured_backward")]
        Distances(call, request["arithmetic"], unit, passes, cast, measured).add_to(answer)
        self._last = {
            "forward.input": list(call.tensors.values()),
            "forward.output.bench": truths,
            "forward.output.device": results,
            "backward.input": list(call.gradients.values()) if backward else [],
            "backward.output.bench": list(truth.grads.values()),
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
    import torch
    import torch.overrides

    _replay.torch = _calls.torch = _element.torch = _draws.torch = _recorded.torch = torch
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
            say(answer.line, answer.blobs())


if __name__ == "__main__":
    main()

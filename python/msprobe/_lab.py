"""The process in which `msprobe acc_check` makes the calls of a dump again: on a device, and in float64 on the CPU.

usage: python _lab.py DEVICE      (descriptor 0 is a socket to the command; the module _replay is there already)

First a line goes out, {"torch": version, "device": name} or {"error": text}. Then lines come in, {"call": CALL, "arithmetic": kind,
"backward": truth, "dtype": of the recorded result, "random": seed} or {"save": {path: part}}, and to each a line goes out,
{"forward": [ITEM], "backward": [ITEM], "note": text} or {"why": text} or {"saved": [path]}. The bytes of the tensors follow, of each
item those of the device before those of the truth. Nothing of the dump is executed: functions come from an allow-list of torch,
tensors through torch.load(weights_only=True).
"""

import importlib.util
import json
import math
import os
import signal
import socket
import sys
from functools import partial

import _replay
from _replay import (
    REFUSALS,
    Call,
    Functions,
    Jitter,
    Refused,
    bound_memory,
    finite,
    limit_of,
    load,
    measure,
    natural,
    relative,
    tensors_in,
    terms,
    unit_of,
    widen,
)

torch = None  # imported by main(), which says so where there is none

MOST_BYTES = 1 << 31  # of a result in float64
# The classes that a target may have are not between its smallest and largest number when one of them is "ignored".
IGNORED_CLASS = ("cross_entropy", "nll_loss")
HALVES = ("torch.float16", "torch.bfloat16")
BY_DTYPE = ("nextafter",)  # what they compute depends on the dtype, so float64 is no truth
CANCELS = 0.05  # of a gradient that one rounding of the inputs changes by this much of itself, little is left
FEW = 100  # elements of a dropout, of which a share says nothing


def own_functional():
    """torch.nn.functional as torch has it, whatever was put into the module of that name."""
    name = "torch.nn._functional_of_torch"
    spec = importlib.util.spec_from_file_location(name, torch.nn.functional.__file__)
    module = importlib.util.module_from_spec(spec)
    add = torch._C._add_docstr
    torch._C._add_docstr = lambda function, text: function  # they have theirs
    try:
        spec.loader.exec_module(module)
    finally:
        torch._C._add_docstr = add
    return module


class LabFunctions(Functions):
    """As Functions; what a program of the user put in the place of a function of torch may be called, too."""

    def __init__(self):
        super().__init__()
        own = torch.overrides.get_overridable_functions().values()
        own = {id(function) for functions in own for function in functions}
        places = {"functional": torch.nn.functional, "torch": torch, "tensor": torch.Tensor}
        for owner, place in places.items():
            found = self._walk([place], lambda f: id(f) in own)
            for name, function in found.items():
                self._allowed[owner].setdefault(name, function)
        self._functional = None

    def find(self, owner, name):
        """Returns the function of this name if it may be called again."""
        function = self._allowed[owner].get(name)
        if function is None:
            raise Refused(f"torch has no function {name} that may be called again")
        return function

    def find_own(self, owner, name):
        """The same of torch itself, by which the truth is computed."""
        function = self.find(owner, name)
        module = getattr(function, "__module__", None)
        if module is None or module.partition(".")[0] in ("torch", "builtins"):
            return function
        if owner == "functional":
            self._functional = self._functional or own_functional()
            function = getattr(self._functional, name, None)
        else:
            function = getattr(torch._C.TensorBase if owner == "tensor" else torch._C._VariableFunctions, name, None)
        if function is None:
            raise Refused(f"the place of torch's {name} is taken, and its own cannot be found")
        return function


def dtype_of(text):
    """The dtype of this name."""
    dtype = getattr(torch, text.rpartition(".")[2], None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"torch has no dtype {text}")
    return dtype


def generated(leaf, generator, api):
    """Makes a tensor as a dump describes it: in its range, with the infinities and NaN that the range shows."""
    dtype, shape = dtype_of(leaf["dtype"]), tuple(leaf["shape"])
    low, high = leaf["min"], leaf["max"]
    if math.prod(shape) * 8 > MOST_BYTES:
        raise Refused(f"a tensor of the shape {list(shape)} is too large")
    if 0 in shape:
        return torch.zeros(shape, dtype=dtype)
    if dtype.is_complex:
        raise Refused("a dump without values does not tell the range of complex numbers")
    if dtype == torch.bool:
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        if api in IGNORED_CLASS:
            low = max(low, 0)
        return torch.randint(int(low), int(high) + 1, shape, generator=generator, dtype=torch.int64).to(dtype)
    info = torch.finfo(dtype)
    if math.isnan(high) and math.isnan(low):
        return torch.full(shape, math.nan, dtype=dtype)
    ends = [min(max(end, info.min), info.max) for end in (low, high)]
    made = torch.rand(shape, generator=generator, dtype=torch.float64) * (ends[1] - ends[0]) + ends[0]
    made = made.clamp(info.min, info.max).to(dtype)
    flat = made.view(-1)
    for place, end in ((0, leaf["first"]), (-1, leaf["last"])):  # both ends are there, and the infinities
        if not math.isnan(end):
            flat[place] = end
    if leaf["nan"] and flat.numel() > 2:
        flat[1] = math.nan
    return made


class LabCall(Call):
    """A function and its arguments, from files or made up."""

    def __init__(self, functions, spec, seed):
        self.name, self.in_place, self.spec, self.module = spec["function"], spec["in_place"], spec, False
        self.function = functions.find(spec["owner"], self.name)
        self.truth = functions.find_own(spec["owner"], self.name)
        self._generator = torch.Generator().manual_seed(seed)
        self.tensors, self.leaves = self._tensors(spec["tensors"])
        self.gradients = self._tensors(spec["gradients"])[0]
        self.draws = False

    def _tensors(self, entries):
        tensors, leaves = load([entry for entry in entries if isinstance(entry[1], str)])
        for key, leaf, requires_grad in sorted(entries, key=lambda entry: natural(entry[0])):
            if not isinstance(leaf, str):
                tensors[key] = generated(leaf, self._generator, self.name)
                if requires_grad and tensors[key].is_floating_point():
                    leaves.add(key)
        return tensors, leaves

    def run(self, tensors, wide=True):
        """Calls the function with `tensors`, which it may overwrite; `wide`: in float64 on the CPU."""
        self.device, self.wide = next((t.device for t in tensors.values()), torch.device("cpu")), wide
        function = self.truth if wide else self.function
        if wide and self.spec["owner"] == "tensor" and self.name in _replay.CASTS:
            self._refuse_choice()
            function = torch.Tensor.double
        state = torch.get_rng_state()
        args = [self._value(v, tensors) for v in self.spec["args"]]
        kwargs = {name: self._value(v, tensors) for name, v in self.spec["kwargs"].items()}
        result = function(*args, **kwargs)
        self.draws = self.draws or not torch.equal(state, torch.get_rng_state())
        return args[0] if result is None and self.in_place and args else result

    def _value(self, v, tensors):
        if isinstance(v, dict) and not self.wide:
            ((kind, value),) = v.items()
            if kind == "torch" and isinstance(getattr(torch, value, None), torch.dtype):
                return getattr(torch, value)
            if kind == "device":
                return self.device
        return super()._value(v, tensors)


def shake(jitter, tensor):
    """Widens a tensor and moves its elements by rounding errors."""
    return jitter("", widen(tensor))


class Pass:
    """One execution of a call, forward and backward."""

    def __init__(self, call, change, backward, wide):
        leaves, inputs = {}, {}
        for key, tensor in call.tensors.items():
            changed = change(tensor)
            if backward and key in call.leaves:
                leaves[key] = changed.detach().clone().requires_grad_()
                inputs[key] = leaves[key].clone()  # so that the function may write into it
            else:
                inputs[key] = changed.detach().clone()
        with torch.set_grad_enabled(backward):
            self.result = call.run(inputs, wide)
        self.grads = self._backward(call, leaves, change) if backward else {}

    def _backward(self, call, leaves, change):
        outs, given = [], []
        free = [t for t in tensors_in(self.result) if t.requires_grad]
        for key, gradient in call.gradients.items():
            at = next((i for i, out in enumerate(free) if out.shape == gradient.shape), None)
            if at is None:
                raise Refused(f"its forward has no result of the shape {list(gradient.shape)} of {key}")
            outs.append(free.pop(at))
            given.append(change(gradient).to(outs[-1].dtype))
        if not outs:
            return {}
        found = torch.autograd.grad(outs, list(leaves.values()), given, allow_unused=True) if leaves else ()
        return dict(zip(leaves, found))


def parts_of(result):
    """The results of a function, those of containers one by one."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)) and not isinstance(result, torch.Size):
        return [part for piece in result for part in (parts_of(piece) if isinstance(piece, (list, tuple)) else [piece])]
    return [result]


class Answer:
    """What goes out: a line, then bytes."""

    def __init__(self):
        self.line, self.blobs = {"forward": [], "backward": [], "note": ""}, []

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
            self.blobs.append(data.numpy())
            item[key] = data.numel()
        return item


class Distances:
    """How far results are from the truth, and how far rounding explains, in ulp of their dtypes.

    `passes`: results and gradients of the device, then those in float64. `unit`: the unit round-off of the inputs.
    """

    def __init__(self, call, kind, unit, passes):
        self._call, self._kind, self._unit = call, kind, unit
        self._passes = [*passes, passes[-1]]
        backward = bool(passes[0][1])
        if unit and (backward or kind not in ("copy", "elementwise")):
            shaken = Pass(call, partial(shake, Jitter(unit)), backward, wide=True)
            self._passes[2] = (parts_of(shaken.result), shaken.grads)

    def add_to(self, answer):
        """Adds "error" and "limit" to the items of which they say something."""
        if self._call.name in BY_DTYPE:
            return
        keys = list(self._call.tensors)
        sides = {"forward": (keys, [part[0] for part in self._passes])}
        if answer.line["backward"]:
            sides["backward"] = (keys, [[part[1].get(key) for key in keys] for part in self._passes])
        for side, (keys, columns) in sides.items():
            floating = any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in columns[0])
            for number, (item, a, b, c) in enumerate(zip(answer.line[side], *columns)):
                same = item["kind"] == "tensor" and a.shape == b.shape == c.shape and a.numel() > 0
                # Choices between equal values (the indices of topk) tell nothing where the values themselves are there.
                if same and (not floating or a.is_floating_point() or a.is_complex()):
                    self._measure(
                        item, *(t.detach().cpu() for t in (a, b, c)), keys[number] if side == "backward" else None
                    )

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
        truth = Pass(call, widen, backward, wide=True)
        ours, cast = self._on_device(call, backward, request["dtype"])
        if call.draws:
            self._compare_draws(call, ours, truth, answer)
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
        Distances(call, request["arithmetic"], unit, passes).add_to(answer)
        self._last = {
            "forward.input": list(call.tensors.values()),
            "forward.output.bench": truths,
            "forward.output.device": results,
            "backward.input": list(call.gradients.values()) if backward else [],
            "backward.output.bench": list(truth.grads.values()),
            "backward.output.device": list(ours.grads.values()),
        }
        return answer

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

    @staticmethod
    def _compare_draws(call, ours, truth, answer):
        """A dropout is judged by the share of zeros; of other draws no element says anything."""
        a, b = (tensors_in(side.result)[:1] for side in (ours, truth))
        if "dropout" not in call.name or not a or not b:
            raise Refused("it draws random numbers")
        shares = [float((t == 0).double().mean()) for t in (a[0], b[0])]
        answer.line["draws"] = a[0].numel() < FEW or abs(shares[0] - shares[1]) < 0.1

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
    if not name.isdigit():
        return torch.device(name)
    if importlib.util.find_spec("torch_npu") is not None:
        importlib.import_module("torch_npu")
        return torch.device("npu", int(name))
    return torch.device("cuda", int(name)) if torch.cuda.is_available() else torch.device("cpu")


def main():
    """Runs the process."""
    stream = socket.socket(fileno=os.dup(0)).makefile("rwb")
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command says when it is over

    def say(value, blobs=()):
        stream.write(json.dumps(finite(value)).encode() + b"\n")
        for blob in blobs:
            stream.write(memoryview(blob))
        stream.flush()

    if importlib.util.find_spec("torch") is None:
        say({"error": f"{sys.executable} has no torch, with which ops are called again"})
        return
    global torch
    import torch
    import torch.overrides

    _replay.torch = torch
    try:
        device = pick(sys.argv[1])
        torch.zeros(1, device=device)
    except REFUSALS as error:
        say({"error": f"torch has no device {sys.argv[1]} here ({str(error).strip().splitlines()[0][:200]})"})
        return
    laboratory = Laboratory(device)
    bound_memory()
    say({"torch": torch.__version__, "device": str(device)})
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
            say(answer.line, answer.blobs)


if __name__ == "__main__":
    main()

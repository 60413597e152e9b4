"""The process in which `msprobe acc_check` makes the calls of a dump of MindSpore again: on a device, and in float64. It needs no torch.

usage: python _lab_mindspore.py DEVICE      (descriptor 0 is a socket to the command; the modules _channel and _numpy_truth are there already)

Lines and bytes are those of _lab.py; a request has {"op": {"name", "forward", "backward", "folder"}} as the dump has them instead of a
call. The truth is numpy's float64 where _numpy_truth has the function, else MindSpore's own in float64. Functions come
from an allow-list of mindspore.mint, mindspore.ops and mindspore.Tensor, tensors from npy files without objects.
"""

import gc
import inspect
import json
import math
import os
import resource
import sys

import numpy as np
from _channel import channel, leave_at_once
from _numpy_truth import GRADIENTS, NUMPY

mindspore = None  # imported by main(), which says so where there is none

REFUSALS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    OSError,
    NotImplementedError,
)
MOST_BYTES = 1 << 31  # of a tensor in float64
SINGLE = 2.0**-24
TAIL, DRAWS, STEPS = 4, 4, 8
EPS = {"Float64": 2.0**-52, "Float32": 2.0**-23, "Float16": 2.0**-10, "BFloat16": 2.0**-7}
LARGEST = {
    "Float64": np.finfo(np.float64).max,
    "Float32": np.finfo(np.float32).max,
    "Float16": 65504.0,
    "BFloat16": 3.3895e38,
}
SMALLEST = {"Float64": 2.0**-1022, "Float32": 2.0**-126, "Float16": 2.0**-14, "BFloat16": 2.0**-126}  # normal numbers
RANDOM = ("dropout", "rand", "normal", "uniform", "bernoulli", "multinomial")
SHARED = "kernel backend shard register asnumpy numpy flush storage save load set_ init_data".split()
OPERATORS = {f"__{p}{n}__" for n in "add sub mul truediv floordiv mod pow matmul".split() for p in ("", "r", "i")} | {
    f"__{n}__" for n in "neg abs eq ne lt le gt ge getitem invert and or xor".split()
}


class Refused(Exception):
    """A call that cannot be made again; the text says why."""


class Functions:
    """What may be called: public functions of mint, its functional part and ops, and methods of tensors."""

    def __init__(self):
        mint = mindspore.mint
        self._places = {
            "Mint": mint,
            "MintFunctional": mint.nn.functional,
            "Functional": mindspore.ops,
            "Tensor": mindspore.Tensor,
        }

    def find(self, kind, name):
        """The function of this name."""
        place = self._places.get(kind)
        if place is None:
            raise Refused(f"functions of {kind} are not called again")
        plain = name.isidentifier() and (not name.startswith("_") or name in OPERATORS)
        function = getattr(place, name, None) if plain and not any(part in name for part in SHARED) else None
        if function is None or inspect.isclass(function) or inspect.ismodule(function) or not callable(function):
            raise Refused(f"MindSpore has no function {kind}.{name} that may be called again")
        return function


def file_of(folder, name):
    """The path of a tensor's file, which is in the folder of the dump."""
    if "/" in name or not name.endswith(".npy"):
        raise Refused(f"{name[:100]} is not a file of the dump")
    return os.path.join(folder, name)


class Call:
    """A function and its arguments as arrays, those of 16 bits as float32."""

    def __init__(self, functions, op, seed):
        parts = op["name"].split(".")
        self.kind, self.name, self.folder = parts[0], parts[1], op["folder"]
        self.function = functions.find(self.kind, self.name)
        self.random = np.random.default_rng(seed)
        self.arrays, self.dtypes = [], []
        self.args = [self._parse(v) for v in op["forward"].get("input_args", [])]
        self.kwargs = {key: self._parse(v) for key, v in op["forward"].get("input_kwargs", {}).items()}
        self.inputs = len(self.arrays)
        backward = op.get("backward") or {}
        given = backward.get("input", [])
        self.given = [self._parse(v) for v in given] if all(v is not None for v in given) else []
        self.base = self.name.strip("_")

    def floats(self):
        """Positions of the inputs that have gradients."""
        return [i for i in range(self.inputs) if self.dtypes[i] in EPS]

    def _parse(self, value):
        if isinstance(value, list):
            return ("list", [self._parse(v) for v in value])
        if value is None and self.kind == "Tensor" and not self.arrays:
            raise Refused("the dump does not have its tensor")
        if not isinstance(value, dict):
            return ("value", value)
        if "dtype" in value and "shape" in value:
            self.arrays.append(self._array(value))
            self.dtypes.append(value["dtype"])
            return ("tensor", len(self.arrays) - 1)
        kind = value.get("type")
        if kind in ("int", "float", "bool", "str", "NoneType"):
            return ("value", value.get("value"))
        if kind == "slice":
            return ("value", slice(*value["value"]))
        if kind in ("mindspore.dtype", "Type", "Number") or "dtype" in str(kind):
            raise Refused("it converts to a dtype")
        raise Refused(f"an argument of the type {str(kind)[:100]} is not known")

    def _array(self, leaf):
        shape, dtype = tuple(leaf["shape"]), leaf["dtype"]
        if any(not isinstance(n, int) or n < 0 for n in shape) or math.prod(shape) * 8 > MOST_BYTES:
            raise Refused(f"a tensor of the shape {str(list(shape))[:100]} is too large")
        if dtype not in EPS and not dtype.startswith(("Int", "UInt", "Bool")):
            raise Refused(f"a tensor of the type {dtype[:50]} is not called again")
        if name := leaf.get("data_name"):
            array = np.load(file_of(self.folder, name), allow_pickle=False)
            if array.shape != shape:
                raise Refused(f"{name[:200]} has another shape than the dump says")
            return array.astype(np.float64) if dtype in EPS else array
        low, high = (leaf.get(f"{end}_except_inf_nan", leaf.get(end)) for end in ("Min", "Max"))
        if low is None or high is None:
            raise Refused("the dump has neither values nor a range")
        low, high = float(low), float(high)
        if dtype not in EPS:
            drawn = self.random.integers(int(low), int(high) + 1, shape)
            return drawn.astype(bool if dtype == "Bool" else dtype.lower())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise Refused("the dump does not tell the range")
        drawn = self.random.uniform(low, high, shape)
        return rounded(drawn, dtype)

    def value(self, parsed, tensor):
        kind, value = parsed
        if kind == "list":
            return [self.value(v, tensor) for v in value]
        return tensor(value) if kind == "tensor" else value


def rounded(array, dtype):
    """Values of a dtype, in float64."""
    if dtype in ("Float32", "Float16"):
        return array.astype(dtype.lower()).astype(np.float64)
    if dtype == "BFloat16":
        bits = array.astype(np.float32).view(np.uint32)
        bits = bits + 0x7FFF + (bits >> 16 & 1)
        return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)
    return array


def to_tensor(array, dtype):
    """A tensor of MindSpore; floats in `dtype`."""
    if dtype in EPS:
        if dtype == "BFloat16":
            return mindspore.Tensor(array.astype(np.float32)).astype(mindspore.bfloat16)
        return mindspore.Tensor(array.astype(dtype.lower()))
    return mindspore.Tensor(array)


def to_array(tensor):
    """An array of a tensor; of 16 bits as float32."""
    if tensor.dtype == mindspore.bfloat16:
        tensor = tensor.astype(mindspore.float32)
    return np.asarray(tensor.asnumpy())


def flat(value):
    """The tensors or arrays of a result."""
    if isinstance(value, (list, tuple)):
        return [part for v in value for part in flat(v)]
    return [value]


def run(call, arrays, wide, backward):
    """Results and gradients in MindSpore; `wide`: in float64."""
    tensors = [to_tensor(a, "Float64" if wide and d in EPS else d) for a, d in zip(arrays, call.dtypes)]
    places = call.floats()

    def forward(*leaves):
        at = dict(zip(places, leaves))
        args = [call.value(v, lambda i: at.get(i, tensors[i])) for v in call.args]
        kwargs = {k: call.value(v, lambda i: at.get(i, tensors[i])) for k, v in call.kwargs.items()}
        return call.function(*args, **kwargs)

    leaves = [tensors[i] for i in places]
    if not backward:
        return flat(forward(*leaves)), []
    others = []  # results that have no gradients

    def floats(*leaves):
        found = flat(forward(*leaves))
        kept = [r for r in found if isinstance(r, mindspore.Tensor) and r.is_floating_point()]
        others.append(len(kept) < len(found))
        return tuple(kept) if len(kept) > 1 else kept[0]

    outputs, pullback = mindspore.vjp(floats, *leaves)
    outputs = flat(outputs)
    given = [tensors[place].astype(out.dtype) for out, (_, place) in zip(outputs, call.given)]
    if len(given) < len(outputs):
        given += [mindspore.ops.zeros_like(out) for out in outputs[len(given) :]]
    grads = flat(pullback(tuple(given) if len(given) > 1 else given[0]))
    return flat(forward(*leaves)) if any(others) else outputs, grads


def by_numpy(call, arrays, function, *first):
    """The results of a numpy function of the call's arguments, None where it has others."""
    if function is None:
        return None
    try:
        args = [call.value(v, lambda i: arrays[i]) for v in call.args]
        kwargs = {k: call.value(v, lambda i: arrays[i]) for k, v in call.kwargs.items()}
        with np.errstate(all="ignore"):
            return [np.asarray(part) for part in flat(function(*first, *args, **kwargs))]
    except REFUSALS:
        return None


def truth_of(call, arrays, backward):
    """Results and gradients in float64: numpy's, else MindSpore's; and whether numpy has all of them."""
    results = by_numpy(call, arrays, NUMPY.get(call.base))
    if not backward and results is not None:
        return results, [], True
    grads = None
    if results is not None and len(results) == 1 and len(call.given) == 1 and len(call.floats()) == call.inputs:
        grads = by_numpy(call, arrays, GRADIENTS.get(call.base), arrays[call.given[0][1]])
        if grads is not None and len(grads) > call.inputs:  # a number among the arguments has one, too
            tensors = [v[0] == "tensor" for v in call.args]
            grads = [g for g, kept in zip(grads, tensors) if kept] if len(tensors) == len(grads) else None
        if grads is not None and [g.shape for g in grads] != [arrays[i].shape for i in call.floats()]:
            grads = None
    if results is not None and grads is not None:
        return results, grads, True
    found, wide = run(call, arrays, True, backward)
    own = [to_array(t) if isinstance(t, mindspore.Tensor) else t for t in found]
    return own if results is None else results, [to_array(g) for g in wide], False


def relative(a, b, smallest=0.0):
    """The larger of the errors relative to the largest element and to the norm, over what is finite.

    No element of b counts as less than `smallest`.
    """
    good = np.isfinite(a) & np.isfinite(b)
    a, b = a[good], b[good]
    apart = np.abs(a - b)
    if not apart.size or not apart.any():
        return 0.0
    pairs = (
        (apart.max(), max(np.abs(b).max(), smallest)),
        (np.linalg.norm(apart), max(np.linalg.norm(b), smallest * math.sqrt(b.size))),
    )
    return max(top / below if below > 0 else math.inf for top, below in pairs)


class Judge:
    """What rounding explains, as python/msprobe/_replay.py and _element.py have it."""

    def __init__(self, call, request, backward, numpy):
        self._call, self._kind, self._backward, self._numpy = call, request["arithmetic"], backward, numpy
        self._measured = request["measured"]
        units = [EPS[d] / 2 for d in call.dtypes if d in EPS]
        self.unit = max(units, default=0.0)
        self._shaken = None

    def _draws(self):
        """Results and gradients with inputs moved by one rounding: in several draws where numpy computes them, which takes no time."""
        if self._shaken is None:
            self._shaken = []
            for draw in range(DRAWS if self._numpy or not self._backward else 1):
                signs = np.random.default_rng(draw + 1)
                moved = [
                    a * (1 + self.unit * signs.choice((-1.0, 1.0), a.shape)) if d in EPS else a
                    for a, d in zip(self._call.arrays, self._call.dtypes)
                ]
                self._shaken.append(truth_of(self._call, moved, self._backward))
        return self._shaken

    def add_to(self, item, ours, truth, dtype, side, place):
        """Adds error, limit and the bound of each element. Returns the bound's distances or None."""
        eps = EPS[dtype]
        special = ~(np.isfinite(ours) & np.isfinite(truth)) | (np.abs(truth) > 0.9 * LARGEST[dtype])
        same = (np.isnan(ours) == np.isnan(truth)) & ((np.sign(ours) == np.sign(truth)) | np.isnan(ours))
        error = math.inf if (special & ~same).any() else relative(ours[~special], truth[~special], SMALLEST[dtype])
        if self._kind == "copy" and side == 0:
            item |= {"error": error / eps, "limit": 0.51, "rule": "exact", "ulps": 0.5, "terms": 1, "condition": 1}
            return None
        unit = max(eps / 2, self.unit)
        inner = min(unit, SINGLE) if eps > 2.0**-40 else unit
        size = np.abs(np.nan_to_num(truth, posinf=0.0, neginf=0.0))
        shapes = [a.shape for a, d in zip(self._call.arrays, self._call.dtypes) if d in EPS]
        length = max(
            [n for s in (*shapes, ours.shape) for n in s] + [max(math.prod(s) for s in shapes) / max(ours.size, 1), 1]
        )
        summed = side or self._kind not in ("elementwise", "function")
        steps = inner * (math.sqrt(length) if summed else {"elementwise": 1, "function": 4}[self._kind])
        settings = any(kind != "tensor" for kind, _ in self._call.args) or self._call.kwargs
        measured = None if side or settings else self._measured.get(f"torch.{dtype.lower()}")
        if not special.any() and self._is_near(item, ours, truth, size, eps, error, steps, measured, side):
            item["terms"] = length
            return None
        steps /= max(self.unit, 1e-300)
        changes = [np.abs(draw[side][place] - truth) for draw in self._draws()]
        moved = np.sqrt(sum(np.nan_to_num(c) ** 2 for c in changes) / len(changes))
        total = np.linalg.norm(moved) / max(np.linalg.norm(size), 1e-300) if summed else self.unit
        condition = max(self.unit, total)
        limit = eps + TAIL * steps * condition
        if side:
            limit += eps + 4 * total
        elif self._kind in ("attention", "unknown"):
            limit += TAIL * unit * math.sqrt(STEPS) * condition / max(self.unit, 1e-300)
        item |= {
            "error": error / eps,
            "limit": limit / eps,
            "condition": total / max(self.unit, 1e-300),
            "terms": length,
        }
        if measured:
            ulps, share = measured
            item |= {"rule": "ulp", "ulps": ulps}
            return (
                np.full(ours.shape, share * unit * max(np.abs(a).max() for a in self._call.arrays)) if share else None
            )
        if limit > 0.25 or self.unit == 0 or len(changes) < DRAWS:
            return None  # of one draw, an element may have moved by nothing
        extra = 4 if side else 0
        if self._kind in ("attention", "unknown", "softmax", "elementwise", "function"):
            extra += TAIL * unit * math.sqrt(STEPS) / self.unit
        typical = max(math.sqrt(float((size**2).mean())), 1.0 if self._call.base == "log_softmax" else 0.0)
        item |= {"rule": "spread", "ulps": 2}
        distance = (TAIL * steps + extra) * np.maximum(moved, self.unit * size) + TAIL * (
            unit if side else inner
        ) * typical
        return distance + SMALLEST[dtype] * length  # terms below are flushed to 0

    def _is_near(self, item, ours, truth, size, eps, error, steps, measured, side):
        """Whether a result is within the least that rounding explains: then no call is made to find how far it goes."""
        limit = eps + TAIL * steps
        if not self.unit or not error <= limit:
            return False
        item |= {"error": error / eps, "limit": limit / eps, "condition": -1}
        if side and not self._numpy:
            return True
        # A unit in the last place is at least half an eps of the value.
        ulps = measured[0] if measured else 2 + TAIL * steps / eps
        if (np.abs(ours - truth) > ulps * eps / 2 * size).any():
            return False
        item |= {"rule": "ulp" if measured else "spread", "ulps": ulps}
        return True


class Laboratory:
    """Answers the requests of the command."""

    def __init__(self):
        self._functions = Functions()
        self._last = {}

    def check(self, request):
        """Makes one call on both sides. Returns the line and the bytes."""
        call = Call(self._functions, request["op"], request["random"])
        if any(part in call.name for part in RANDOM):
            raise Refused("it draws random numbers")
        backward = bool(call.given and call.floats())
        results, grads = run(call, call.arrays, False, backward)
        truths, wide, numpy = truth_of(call, call.arrays, backward)
        if len(results) != len(truths):
            raise Refused(f"it has {len(results)} results on the device and {len(truths)} in float64")
        judge = Judge(call, request, backward, numpy)
        line, blobs = {"forward": [], "backward": [], "note": ""}, []
        pairs = (("forward", 0, results, truths), ("backward", 1, grads, wide))
        for name, side, ours, theirs in pairs:
            for place, (a, b) in enumerate(zip(ours, theirs)):
                line[name].append(self._item(judge, a, b, side, place, blobs))
        self._last = {
            "forward.input": call.arrays[: call.inputs],
            "forward.output.bench": truths,
            "forward.output.device": results,
            "backward.input": [call.arrays[place] for _, place in call.given] if backward else [],
            "backward.output.bench": wide,
            "backward.output.device": grads,
        }
        return line, blobs

    def save(self, wanted):
        """Writes the arrays of the last call to files, {prefix of the path: part}; of 16 bits as float32."""
        saved = []
        for prefix, part in wanted.items():
            for number, value in enumerate(self._last.get(part, ())):
                array = to_array(value) if isinstance(value, mindspore.Tensor) else np.asarray(value)
                if array.dtype.kind in "biufc":
                    np.save(f"{prefix}.{number}.npy", array)
                    saved.append(f"{prefix}.{number}.npy")
        return {"saved": saved}

    @staticmethod
    def _item(judge, ours, truth, side, place, blobs):
        if not isinstance(ours, mindspore.Tensor):
            return {"kind": "value", "type": str(type(ours)), "same": bool(ours == truth)}
        dtype = str(ours.dtype)
        shape = [int(n) for n in ours.shape]
        item = {
            "kind": "tensor",
            "dtype": "mindspore." + dtype.lower(),
            "shape": shape,
            "truth_shape": list(np.shape(truth)),
        }
        array = to_array(ours)
        if list(np.shape(truth)) != shape:
            return item | {"bytes": 0, "truth_bytes": 0}
        if dtype in EPS:
            wide, truth = array.astype(np.float64), np.asarray(truth, dtype=np.float64)
            bound = judge.add_to(item, wide, truth, dtype, side, place) if array.size else None
            parts = [("bytes", as_bytes(array, dtype)), ("truth_bytes", np.ascontiguousarray(truth))]
            if bound is not None:
                parts.append(
                    ("bound_bytes", np.ascontiguousarray(np.broadcast_to(bound, truth.shape).astype(np.float32)))
                )
        else:
            truth = np.asarray(truth).astype(array.dtype)
            if not judge._call.floats() or side:
                item |= {"error": 0.0 if np.array_equal(array, truth) else math.inf, "limit": 0.5}
            parts = [("bytes", np.ascontiguousarray(array)), ("truth_bytes", np.ascontiguousarray(truth))]
        for key, data in parts:
            item[key] = data.nbytes
            blobs.append(data.reshape(-1).view(np.uint8))
        return item


def as_bytes(array, dtype):
    """The bytes of the dtype."""
    if dtype == "BFloat16":
        return np.ascontiguousarray((array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return np.ascontiguousarray(array)


def main():
    """Runs the process."""
    stream, say = channel()
    os.environ.setdefault("GLOG_v", "3")

    global mindspore
    try:
        import mindspore
        import mindspore.mint
    except ImportError:
        say({"error": f"{sys.executable} has no mindspore, with which ops are called again"})
        return
    # Each call waits for its results anyway: threads that wait for each other in between take most of the processor's time.
    blocking = getattr(getattr(mindspore, "runtime", None), "launch_blocking", None)
    if blocking is not None:
        blocking()
    gc.freeze()  # nothing that was imported is garbage, ever
    laboratory = Laboratory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    say({"mindspore": mindspore.__version__, "device": str(mindspore.get_context("device_target"))})
    for line in stream:
        request = json.loads(line)
        try:
            if "save" in request:
                say(laboratory.save(request["save"]))
                continue
            answer, blobs = laboratory.check(request)
        except Refused as refusal:
            say({"why": str(refusal)})
        except REFUSALS as error:
            text = str(error).strip().split("\n", 1)[0][:200]
            say({"why": f"MindSpore refuses the call ({type(error).__name__}: {text})"})
        else:
            say(answer, blobs, request.get("part"))
    leave_at_once()


if __name__ == "__main__":
    main()

"""Compares two dumps of the same training in full. What may differ are rules.py's rules and nothing else."""

import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch

HERE = Path(__file__).resolve().parent
# How exactly values are compared: to the bit, up to rounding, not at all. A whole dump also: to the bit up to the first
# gradient, up to rounding from there to the optimizer.
BITS, ROUNDING, SHAPE, BITS_OF_FORWARD = "bits", "rounding", "shape", "bits up to the first gradient"
# What ours says in addition, behind all else.
MORE = ("buffer", "unwritten", "nan_count", "inf_count", "overflow_margin")
STATISTICS = ("Max", "Min", "Mean", "Norm")


class Dump(NamedTuple):
    directory: Path
    envelope: dict
    data: dict
    construct: dict
    stacks: dict  # name -> frames
    files: dict | None = None  # of a recorded dump: name of a file of tensors -> header_of()

    @property
    def tensors(self):
        return sum(1 for entry in self.data.values() for _ in tensors_of(entry))

    def tensor(self, name):
        """What a file of tensors holds."""
        return torch.load(self.directory / "dump_tensor_data" / name, weights_only=True)


def read(directory):
    whole = json.loads((directory / "dump.json").read_text())
    data = whole.pop("data")
    stacks = json.loads((directory / "stack.json").read_text()).values()
    by_name = {
        name: [without_prefix(frame) for frame in frames if "msprobe/" not in frame]
        for names, frames in stacks
        for name in names
    }
    return Dump(directory, whole, data, json.loads((directory / "construct.json").read_text()), by_name)


def without_prefix(frame):
    """The two tools have environments of their own, with the same packages, and checkouts lie anywhere."""
    return re.sub(rf"File (\S*/site-packages/|\S*/python3\.\d+/|{re.escape(str(HERE.parent))}/)", "File ", frame)


def without_own_lines(frames):
    """For a recorded dump: lines of the tests themselves move with every change of theirs; what stands there is compared."""
    return [re.sub(r"^(File (?:conformance|python)/\w+\.py, line )\d+", r"\1_", frame) for frame in frames]


def header_of(tensor):
    """What is equal of a tensor on any processor."""
    return str(tensor.dtype), list(tensor.shape), tensor.requires_grad


def tensors_of(value):
    if isinstance(value, list):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        if "shape" in value and "dtype" in value:
            yield value
        else:
            yield from tensors_of(list(value.values()))


class Comparison:
    """found: the differences that no rule allows. allowed: how often each rule was needed. agree: how many values are equal,
    by how exactly they are."""

    def __init__(self, ours, theirs, rules, precision):
        """precision: BITS, BITS_OF_FORWARD, ROUNDING (of a recorded dump) or SHAPE."""
        self.ours, self.theirs, self.rules, self.precision = ours, theirs, rules, precision
        self.found = []
        self.allowed = Counter()
        self.agree = Counter()
        self._envelope()
        self._names()
        self._entries()
        self._parents()
        self._stacks()

    def _is_allowed(self, kind, name, path=""):
        for rule in self.rules:
            if rule.kind == kind and re.fullmatch(rule.name, name) and re.fullmatch(rule.path, path):
                self.allowed[rule] += 1
                return True
        return False

    def _say(self, what, name, ours, theirs):
        self.found.append(f"{what} {name}: {ours!r} against their {theirs!r}")

    def _envelope(self):
        for key in {**self.ours.envelope, **self.theirs.envelope}:
            ours, theirs = self.ours.envelope.get(key, "absent"), self.theirs.envelope.get(key, "absent")
            if key == "dump_data_dir" and ours and theirs:
                ours, theirs = Path(ours).parts[-1], Path(theirs).parts[-1]
            if ours != theirs:
                self._say("dump.json", key, ours, theirs)
        if list(self.ours.envelope) != list(self.theirs.envelope):
            self._say("dump.json", "keys", list(self.ours.envelope), list(self.theirs.envelope))

    # ---- names and their order

    def _common(self, ours, theirs, kind):
        """The names of both, in the order of each; reports those that only one side has."""
        behind = len(ours)  # position behind the last name they have, too
        while behind and ours[behind - 1] not in theirs:
            behind -= 1
        place = {name: number for number, name in enumerate(ours)}
        known, expected = set(ours), set(theirs)
        for name in [*ours, *theirs]:
            if name not in expected:
                owner = name.replace(".parameters_grad.", ".forward.")
                if owner != name and owner not in self.ours.data and self._is_allowed("not called", name):
                    continue
                tail = place[name] >= behind and self._is_allowed(f"only ours in {kind}, at the end", name)
                if not tail and not self._is_allowed(f"only ours in {kind}", name):
                    self.found.append(f"{kind}: {name} is only in ours")
            elif name not in known and not self._is_allowed(f"only theirs in {kind}", name):
                self.found.append(f"{kind}: {name} is only in theirs")
        return [name for name in ours if name in expected], [name for name in theirs if name in known]

    def _order(self, ours, theirs, kind):
        if ours == theirs:
            return
        moved = [name for name in theirs if not self._is_allowed(f"order in {kind}", name)]
        kept = set(moved)
        ours = [name for name in ours if name in kept]
        for mine, other in zip(ours, moved):
            if mine != other:
                self.found.append(f"{kind}: {mine} where theirs has {other}")
                return

    def _names(self):
        self._order(*self._common(list(self.ours.data), list(self.theirs.data), "names"), "names")

    def _parents(self):
        ours, theirs = self.ours.construct, self.theirs.construct
        self._order(*self._common(list(ours), list(theirs), "construct"), "construct")
        for name, parent in theirs.items():
            if name in ours and ours[name] != parent and not self._is_allowed("parent", name, str(parent)):
                self._say("parent of", name, ours[name], parent)

    def _stacks(self):
        both = self.ours.data.keys() & self.theirs.data.keys()
        for name in both | self.theirs.stacks.keys() - self.ours.data.keys():
            ours, theirs = self.ours.stacks.get(name), self.theirs.stacks.get(name)
            if self.theirs.files is not None and ours:
                ours = without_own_lines(ours)
            if ours == theirs or self._is_allowed("stack", name):
                continue
            if ours and theirs:
                number = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), None)
                if number is None:
                    ours, theirs = len(ours), len(theirs)
                else:
                    ours, theirs = ours[number], theirs[number]
            self._say("stack of", name, ours, theirs)

    # ---- what stands in the entries

    def _entries(self):
        how = BITS if self.precision == BITS_OF_FORWARD else self.precision
        of_optimizer = {name for name, parent in self.ours.construct.items() if parent == "optimizer"}
        if (
            self.precision == ROUNDING and not of_optimizer
        ):  # level L1 does not say it: functions behind the first gradient
            gradients = itertools.dropwhile(lambda name: ".backward" not in name, self.ours.data)
            of_optimizer = {name for name in gradients if name.endswith(".forward")}
        for name, entry in self.ours.data.items():
            if self.precision == BITS_OF_FORWARD and (".backward" in name or ".parameters_grad" in name):
                how = ROUNDING
            if how == ROUNDING and name in of_optimizer:
                how = SHAPE  # some divide gradients by their own size: what is left of small ones is rounding
            if name in self.theirs.data:
                self._value(name, "", entry, self.theirs.data[name], how)

    def _value(self, name, path, ours, theirs, how):
        if type(ours) is not type(theirs):
            kinds = dict.fromkeys((self._one_sided(name, ours, theirs), "value"))
            if not any(self._is_allowed(kind, name, path) for kind in kinds):
                self._say("value", f"{name} {path}", ours, theirs)
        elif isinstance(ours, dict):
            keys = list(ours)
            while keys and keys[-1] in MORE and self._is_allowed("keys", "any", keys[-1]):
                keys.pop()
            if keys != list(theirs):
                if not self._is_allowed("keys", name, path):
                    self._say("keys", f"{name} {path}", list(ours), list(theirs))
            if "shape" in ours and "dtype" in ours:
                self._tensor(name, path, ours, theirs, how)
                return
            for key in ours.keys() & theirs.keys():
                self._value(name, f"{path}.{key}", ours[key], theirs[key], how)
        elif isinstance(ours, list):
            if len(ours) != len(theirs) and not self._is_allowed("length", name, path):
                self._say("length of", f"{name} {path}", len(ours), len(theirs))
            for number, (mine, other) in enumerate(zip(ours, theirs)):
                self._value(name, f"{path}.{number}", mine, other, how)
        elif ours == theirs:
            self.agree[BITS] += 1
        else:
            if how != BITS and isinstance(ours, float):  # computed by the training
                if how == SHAPE or math.isclose(ours, theirs, rel_tol=1e-4):
                    self.agree[ROUNDING] += 1
                    return
            if not self._is_allowed("value", name, path):
                self._say("value", f"{name} {path}", ours, theirs)

    def _one_sided(self, name, ours, theirs):
        """The kind of difference between values of two types."""
        if theirs is None and isinstance(ours, dict) and set(ours) <= {"type", "value"}:
            return "object"
        forward = self.ours.data.get(name.replace(".backward.", ".forward."))
        if (
            ours is None
            and isinstance(theirs, dict)
            and name.startswith("Module.")
            and forward
            and ".backward." in name
        ):
            given = [
                json.dumps(tensor) for tensor in tensors_of([forward.get("input_args"), forward.get("input_kwargs")])
            ]
            given += [json.dumps(tensor) for tensor in tensors_of(forward.get("output"))]
            if len(set(given)) < len(given):
                return "one tensor several times"
        return "value"

    def _tensor(self, name, path, ours, theirs, how):
        wrong = []
        for key in ours.keys() & theirs.keys():
            mine, other = ours[key], theirs[key]
            if key in STATISTICS:
                same = self._statistic(key, ours, theirs, how)
            elif (
                key == "md5"
                and isinstance(mine, str)
                and not isinstance(other, str)
                and (ours["shape"] == [] or 1 in ours["shape"])
            ):
                # Their xor of a single number is that number; null where a dimension of one element has another stride.
                same = re.fullmatch("0x[0-9a-f]{16}", mine) and self._is_allowed("value", "any", "xor of a number")
            elif key == "md5":
                texts = isinstance(mine, str) and isinstance(other, str)
                same = mine == other
                if how != BITS and type(mine) is type(other):
                    same = same or not texts or len(mine) == len(other)
            elif key == "data_name":
                same = mine == other and self._file(mine, how)
            else:
                same = mine == other
            if not same:
                wrong.append((key, mine, other))
            else:
                self.agree[BITS if mine == other or repr(mine) == repr(other) else ROUNDING] += 1
        if wrong and not self._is_allowed("value", name, path):
            for key, mine, other in wrong:
                self._say(key, f"{name} {path}", mine, other)

    def _statistic(self, key, ours, theirs, how):
        mine, other = ours[key], theirs[key]
        if other is None:
            # They have neither for integers and float64, and no Norm for complex numbers.
            return mine is None or (key in ("Mean", "Norm") and self._is_allowed("value", "any", key))
        if mine is None or isinstance(mine, bool) or isinstance(other, bool):
            return mine is other
        norm, count = abs(ours["Norm"] or 0.0), max(math.prod(ours["shape"]), 1)
        if not math.isfinite(other):
            if math.isnan(mine) == math.isnan(other) and (math.isnan(mine) or mine == other):
                return True
            # Their sums end at the greatest float32.
            return key in ("Mean", "Norm") and norm > 1e19 and self._is_allowed("value", "any", key)
        # They sum in the type of the tensor.
        relative = 1e-5 if ours["dtype"] not in ("torch.bfloat16", "torch.float16") else 1e-2
        if how != BITS:
            # What would be zero but for rounding, as the gradient of a key's bias, is another such number on another processor:
            # up to 6e-8 with the kernels of SSE in place of those of AVX-512, beside gradients of 1e-3 and more.
            least = 1e-6 if self.precision == ROUNDING else 1e-7
            return how == SHAPE or abs(mine - other) <= 10 * relative * max(norm, abs(other)) + least
        if key in ("Max", "Min"):
            near = "complex" in ours["dtype"] and math.isclose(mine, other, rel_tol=3e-7)
            return mine == other or (near and self._is_allowed("value", "any", "magnitude"))
        if not math.isfinite(norm):
            return True
        # Squares below the least float32 are lost there.
        tolerance = relative * norm / (1 if key == "Norm" else math.sqrt(count))
        return abs(mine - other) <= tolerance + 1e-18

    def _file(self, name, how):
        ours = self.ours.tensor(name)
        if self.theirs.files is not None:
            return header_of(ours) == self.theirs.files.get(name)
        theirs = self.theirs.tensor(name)
        if header_of(ours) != header_of(theirs):
            return False
        if how == BITS:
            return bits(ours) == bits(theirs)
        return True


def bits(tensor):
    plain = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1))
    return plain.view(torch.uint8).numpy().tobytes()

"""Compares what the recorder saw with what msprobe wrote, entry by entry."""

import json
import math
import re
import zlib
from collections import defaultdict

_MODULES = ("Module.", "Cell.")
WAYS = ("bare", "watch", "split", "tool")
# docs/en/capture/values.md: of these, Mean is exact to 2e-6 of the mean absolute value and Norm to 1e-6 of itself.
_SUMMED_IN_FLOAT32 = {f"torch.{t}" for t in ("float32", "bfloat16", "float16", "quint8", "qint8", "qint32")} | {
    "Float32",
    "BFloat16",
    "Float16",
}
# What sums in another order may differ by, relative to the largest element.
_SLACK = {
    "bfloat16": 2**-5,
    "float16": 2**-8,
    "float32": 2**-17,
    "float64": 2**-46,
    "complex64": 2**-17,
    "complex128": 2**-46,
}


class Verdict:
    """What was found in one case."""

    def __init__(self, name):
        self.name = name
        self.entries = self.items = self.rounded = self.said = self.unknown = self.extra = 0
        self.wrong, self.missing, self.died, self.bits, self.notes = [], [], [], [], []

    @property
    def status(self):
        for found, text in (
            (self.died, "died"),
            (self.bits, "bits differ"),
            (self.wrong, "wrong"),
            (self.missing, "silently missing"),
        ):
            if found:
                return text
        return "ok"

    def evidence(self):
        return [*self.died, *self.bits, *self.wrong, *self.missing]


class Duplicates(list):
    """All values of a key that an object has several times."""


def read_dump(path):
    def pairs(members):
        found = {}
        for key, value in members:
            if key in found:
                found[key] = Duplicates([*(found[key] if isinstance(found[key], Duplicates) else [found[key]]), value])
            else:
                found[key] = value
        return found

    return json.loads(path.read_text(), object_pairs_hook=pairs)


def _same(found, right):
    if isinstance(found, float) and isinstance(right, float) and math.isnan(right):
        return math.isnan(found)
    return type(found) is type(right) and found == right if isinstance(right, bool) else found == right


def _near(found, right, bound):
    if found is None or right is None or isinstance(right, bool):
        return found is right
    if math.isnan(right) or math.isinf(right):
        return _same(float(found), float(right))
    return abs(found - right) <= bound


def figure_faults(found, right, rounding):
    """Names of the members of a tensor's item that are not as they must be."""
    faults = [k for k in ("dtype", "shape") if k in right and found.get(k) != right[k]]
    if "requires_grad" in found and found["requires_grad"] != right["requires_grad"]:
        faults.append("requires_grad")
    if found.get("md5", "").startswith("0x"):  # in the place of the statistics
        return faults + (["md5"] if right.get("crc") and not rounding and found["md5"] != right["xor"] else [])
    magnitude = max([abs(right[k]) for k in ("Max", "Min") if isinstance(right[k], (int, float))] or [0])
    exact = right["dtype"] not in _SUMMED_IN_FLOAT32
    mean_abs, norm = right.get("mean_abs", 0), abs(right.get("Norm") or 0)
    bounds = {
        "Max": 0,
        "Min": 0,
        "Mean": mean_abs * (1e-11 if exact else 2e-6),
        "Norm": norm * (1e-11 if exact else 1e-6),
    }
    if "complex" in right["dtype"].lower():  # an absolute value has a last digit of its own
        bounds = {k: v + 4e-7 * max(magnitude, 0) * (100 if k == "Norm" else 1) for k, v in bounds.items()}
    if rounding:
        slack = _SLACK.get(right["dtype"].lower().replace("torch.", ""), 0) * magnitude
        bounds = {
            k: v + slack * (max(right.get("count", 1), 1) ** 0.5 if k == "Norm" else 1) for k, v in bounds.items()
        }
    faults += [k for k, bound in bounds.items() if not _near(found.get(k), right[k], bound)]
    faults += [k for k in ("nan_count", "inf_count") if not rounding and found.get(k) != right.get(k)]
    if right.get("crc") and not rounding and "md5" in found and found["md5"] != right["crc"]:
        faults.append("md5")
    return faults


def _tell(item):
    if isinstance(item, dict) and "Max" in item:
        return f"[{item.get('dtype', '').replace('torch.', '')} {item.get('shape')} Max {item['Max']} Min {item['Min']} Norm {item['Norm']}]"
    return json.dumps(item)[:90]


class Judge:
    """One step of one rank."""

    def __init__(self, verdict, directory, data, files):
        self.verdict, self.where, self.data, self.files = verdict, directory, data, files
        self.nulls = []

    def wrong(self, place, found, right, why=""):
        self.verdict.wrong.append(f"{self.where} {place}: {why + ' ' if why else ''}{_tell(found)} for {_tell(right)}")

    def item(self, place, found, right, rounding=False):
        if isinstance(right, dict) and "any" in right:
            return
        self.verdict.items += 1
        if isinstance(right, list):
            if not isinstance(found, list) or len(found) != len(right):
                return self.wrong(place, found, right)
            for i, (f, r) in enumerate(zip(found, right)):
                self.item(f"{place}.{i}", f, r, rounding)
        elif right is None:
            if found is not None:
                self.wrong(place, found, right, "null is right:")
        elif "dict" in right:
            if not isinstance(found, dict) or list(found) != list(right["dict"]):
                return self.wrong(place, found, right, "members:")
            for key, r in right["dict"].items():
                self.item(f"{place}.{key}", found[key], r, rounding)
        elif "value" in right:
            if not isinstance(found, dict) or not _same(found.get("value"), right["value"]):
                self.wrong(place, found, right)
        elif "tensor" in right:
            self.tensor(place, found, right, rounding)

    def tensor(self, place, found, right, rounding):
        if found is None or (
            isinstance(found, dict) and "Max" in found and found["Max"] is None and right["Max"] is not None
        ):
            if right.get("waits"):
                self.verdict.said += 1
            else:
                self.nulls.append(f"{self.where} {place}: null for {_tell(right)}")
            return
        if not isinstance(found, dict) or "dtype" not in found:
            return self.wrong(place, found, right)
        faults = figure_faults(found, right, False)
        if faults and rounding and not figure_faults(found, right, True):
            self.verdict.rounded += 1
            return
        if faults:
            self.wrong(place, found, right, ", ".join(faults) + ":")
        elif found.get("data_name") and right.get("crc") and not rounding:
            self.file(place, found, right)

    def file(self, place, found, right):
        import torch
        from figures import raw_bytes

        tensor = torch.load(self.files / found["data_name"], weights_only=True)
        crc = f"{zlib.crc32(raw_bytes(tensor)):08x}"
        if crc != right["crc"]:
            self.verdict.wrong.append(
                f"{self.where} {place}: the file {found['data_name']} has {crc}, right is {right['crc']}"
            )


def close(one, other):
    """Whether two items are the same up to the rounding of sums in another order."""
    if one is None or other is None:
        return one is None and other is None
    return not figure_faults(one, other, True)


def _strip(values):
    return [v for v in values if v is not None]


def module_gradients(judge, name, found, watch, split, unknown):
    """Each position: exact where nothing else reaches the tensor, up to rounding where views changed the order of sums."""
    for side in ("input", "output"):
        # Without views, which the case refuses, what a module itself makes of one of several outputs is not told apart.
        inner = split is None and (side == "output" or len(watch["input"]) > 1)
        if side in unknown or inner:
            judge.verdict.unknown += 1
            continue
        right = (split or watch)[side]
        positions = range(len(right))
        if side == "output":  # keyword arguments have no place there
            positions = positions[: (split or watch)["sides"]["positional"]]
        given = found.get(side)
        wanted = []
        for p in positions:
            r, rounding = right[p], split is not None
            if (
                watch
                and p < len(watch[side])
                and r is not None
                and watch[side][p] is not None
                and close(watch[side][p], r)
            ):
                r, rounding = watch[side][p], False
            wanted.append((p, r, rounding))
        hidden = (split or {}).get("unknown", []) if side == "output" else []
        if given is not None and len(given) != len(wanted):
            given = _strip(given)
            wanted = [w for w in wanted if w[1] is not None]
        if given is None or len(given) != len(wanted):
            judge.wrong(f"{name}.{side}", found.get(side), [w[1] for w in wanted], "number of gradients:")
            continue
        for f, (p, r, rounding) in zip(given, wanted):
            if p in hidden:
                judge.verdict.unknown += 1
                continue
            judge.item(f"{name}.{side}.{p}", f, r, rounding)


def _grouped(entries, gradients_of_modules=False):
    found = defaultdict(list)
    for name, entry in entries:
        if not gradients_of_modules or (name.startswith(_MODULES) and ".backward." in name):
            found[name].append(entry)
    if (
        gradients_of_modules
    ):  # as torch's own hook: what reaches the arguments without passing through an output is no call's
        found = {n: kept for n, es in found.items() if (kept := [e for e in es if any(e["input"])])}
    return found


def _at_level(name, level):
    return level == "mix" or name.startswith(_MODULES) == (level == "L0")


_NUMBER = re.compile(r"(.*\.(?:forward|backward)\.)(\d+)$|(.*\.)(\d+)\.(?:forward|backward)$")


def _names_of_passes(entries):
    """{name: names of its passes}: a further pass through a graph has a number that no call has so far (docs/en/capture/values.md)."""
    last, passes = defaultdict(lambda: -1), defaultdict(list)
    for name, _ in entries:
        match = _NUMBER.match(name)
        if match is None:
            continue
        before, number = (part for part in match.groups() if part is not None)
        base = before.removesuffix("backward.").removesuffix("forward.")
        last[base] = max(last[base], int(number))
        if "backward" not in name:
            continue
        if passes[name]:
            last[base] += 1
            passes[name].append(f"{before}{last[base]}{name[len(before) + len(number) :]}")
        else:
            passes[name].append(name)
    return passes


def judge_step(verdict, directory, watch, split, level):
    where = directory.parent.name + (f"/{directory.name}" if directory.name != "rank" else "")
    path = directory / "dump.json"
    if not path.exists():
        verdict.missing.append(f"{where}: no dump.json")
        return
    data = read_dump(path)["data"]
    summary = json.loads((directory / "dump_summary.json").read_text())
    judge = Judge(verdict, where, data, directory / "dump_tensor_data")
    told = defaultdict(dict)
    for name, side, values in watch["told"]:
        told[name][side] = values
    unknown = defaultdict(set)
    for name, side, _ in watch["limits"]:
        unknown[name].add(side)
    seen, split_seen = _grouped(watch["entries"]), _grouped(split["entries"] if split else [], True)
    absent, further = [], set()
    passes = _names_of_passes(watch["entries"])
    names = [n for n in dict.fromkeys([*seen, *split_seen, *told]) if _at_level(n, level) and "entry" not in unknown[n]]
    for name in names:
        kind = "backward" if ".backward" in name else "gradients" if ".parameters_grad." in name else "forward"
        truths = seen.get(name, [None])
        if kind == "backward" and name.startswith(_MODULES):
            if name in split_seen:
                truths = [None] * len(split_seen[name])
            elif split and name not in told:
                continue  # only what reached the tensors by another way than this call
        values = data.get(name)
        if values is None:
            absent += [f"{where} {name}: no entry"] * len(truths)
            continue
        values = list(values) if isinstance(values, Duplicates) else [values]
        if len(values) > 1:
            verdict.missing.append(f"{where} {name}: {len(values)} entries of one name, readers keep the last")
        values += [data[other] for other in passes[name][1 : len(truths)] if other in data]
        further |= set(passes[name][1:])
        if len(values) < len(truths):
            absent += [f"{where} {name}: {len(values)} entries for {len(truths)} passes"]
        for i, (found, _) in enumerate(zip(values, truths)):
            verdict.entries += 1
            one_watch = seen[name][i] if i < len(seen.get(name, [])) else None
            one_split = split_seen[name][i] if i < len(split_seen.get(name, [])) else None
            if i == 0 and told[name]:
                for side, right in told[name].items():
                    if isinstance(right, dict) and "dict" not in right:
                        right = {"dict": right}
                    judge.item(f"{name}.{side}" if side else name, found.get(side) if side else found, right)
            hidden = unknown[name] | (set(told[name]) if i == 0 else set())
            _judge_entry(judge, kind, name, found, one_watch, one_split, hidden)
    known = {*seen, *split_seen, *told, *(n for n, sides in unknown.items() if "entry" in sides)}
    more = [n for n in data if n not in known and n not in further and _at_level(n, level)]
    verdict.extra += len(more)
    verdict.notes += [f"{where} {n}: only in the dump" for n in more[:20]]
    if split:
        never = [n for n in more if n.startswith(_MODULES) and ".backward." in n]
        verdict.wrong += [f"{where} {n}: an entry, but no gradient came to an output of this call" for n in never]
    _settle(verdict, [*absent, *judge.nulls], summary, where)


def _judge_entry(judge, kind, name, found, watch, split, hidden):
    if kind == "backward" and name.startswith(_MODULES):
        if split or watch:
            module_gradients(judge, name, found, watch, split, hidden)
    elif kind == "backward" and watch:
        for side in {"input", "output"} - hidden:
            judge.item(f"{name}.{side}", found.get(side), watch[side])
    elif kind == "gradients" and watch:
        if "" in hidden:
            return
        right = {k: v for k, v in watch["gradients"].items() if k not in hidden}
        for parameter in set(found) - set(watch["gradients"]):
            judge.wrong(f"{name}.{parameter}", found[parameter], None, "not there:")
        for parameter, gradient in right.items():
            judge.item(f"{name}.{parameter}", found.get(parameter, [None]), gradient)
    elif watch:
        for side in ("input_args", "output", "parameters"):
            if side in watch and side not in hidden and not (watch.get("raised") and side != "input_args"):
                judge.item(f"{name}.{side}", found.get(side), watch[side])
        judge.item(f"{name}.input_kwargs", found.get("input_kwargs"), {"dict": watch["input_kwargs"]})


def _settle(verdict, nulls, summary, where):
    """What is null or absent is said where the summary counts at least as much; else it is missing silently."""
    counted = sum(n for n in summary.get("skipped", {}).values() if isinstance(n, int))
    if nulls and counted >= len(nulls):
        verdict.said += len(nulls)
    elif nulls:
        verdict.missing += [f"{n} (the summary counts {counted})" for n in nulls]


def judge_case(name, out, level, steps, ranks):
    """The verdict of a case whose ways were run into the directory `out`."""
    verdict = Verdict(name)
    for rank in range(ranks):
        done = {way: json.loads((out / f"{way}{rank}.json").read_text()) for way in WAYS}
        for way in WAYS:
            if "error" in done[way]:
                last = done[way]["error"].strip().splitlines()[-1]
                where = verdict.died if way in ("bare", "tool", "watch") else verdict.notes
                where.append(f"{way} died: {last[:200]}")
        if verdict.died:
            continue
        if done["tool"]["bits"] != done["bare"]["bits"]:
            verdict.bits.append(f"rank {rank}: the training with msprobe has other bits")
        if done["watch"]["bits"] != done["bare"]["bits"]:
            verdict.bits.append(f"rank {rank}: the recorder changes the training")
        for i in range(steps):
            split = done["split"]["steps"][i] if "error" not in done["split"] else None
            directory = out / "dump" / f"step{i}" / (f"rank{rank}" if ranks > 1 else "rank")
            judge_step(verdict, directory, done["watch"]["steps"][i], split, level)
    return verdict

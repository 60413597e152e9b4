"""The process in which `msprobe lab` makes the calls of a dump again under relations that must not change their results.

usage: python _relations.py DEVICE      (descriptor 0 is a socket to the command; the modules _replay and _lab are there already)

First a line goes out, {"torch": version, "device": name, "threads": n} or {"error": text}. Then lines come in, {"call", "dtype", "random",
"relations": [name], "batch", "sequence", "rows", "chunk", "pad"}, and to each a line goes out, {"cells": [CELL]} or {"why": text}. A cell
is {"relation", "why": text, "apart": whether the call has nothing to do with the relation} or {"relation", "detail", "pairs": [PAIR]}. A
PAIR is {"got": dtype, "want": dtype, "got_bytes": n, "want_bytes": n}: what the changed call gave, and the same elements of the unchanged
one, whose bytes follow in this order; with "as" the ulp is that of this dtype.

Whether a relation holds for a function is not looked up: a change is only judged when the function in float64 on the CPU gives the same
with it and without it. What remains in the dtype of the call is then rounding, or a choice of kernel.
"""

import importlib
import json
import sys

import _calls
import _changes
import _compat
import _lab
import _replay
from _changes import Change, every_second, keep_layout, nudged, placements, same, turned
from _channel import channel
from _lab import LabCall, LabFunctions, dtype_of, parts_of, pick
from _replay import REFUSALS, Refused, bound_memory, widen

torch = None  # imported by main(), which says so where there is none

REPEATS = 3
HALVES = _lab.HALVES


class Unconcerned(Refused):
    """A call that has nothing of what a relation changes: it is the same call in a run that is changed."""


class Experiment:
    """A call of the dump, as it was and changed."""

    def __init__(self, call, device, recorded):
        self.call, self._device, self._autocast = call, device, None
        with torch.no_grad():
            self.exact = self._tensors(self.run({key: widen(t) for key, t in call.tensors.items()}, wide=True))
            self.inputs = {key: t.to(device) for key, t in call.tensors.items()}
            try:
                found = self._tensors(self.run(self.inputs))
            except RuntimeError:
                if recorded not in HALVES:
                    raise
                found = []  # types that only autocast brings together
            first = next((t for t in found if t.is_floating_point()), None)
            if recorded in HALVES and (first is None or str(first.dtype) != recorded):
                self._autocast = dtype_of(recorded)
                found = self._tensors(self.run(self.inputs))
        if call.draws:
            raise Refused("it draws random numbers")
        if not found:
            raise Refused("it has no tensor as result")
        self.whole = found

    def run(self, inputs, wide=False):
        """The results for other inputs, which the function may overwrite."""
        inputs = {key: keep_layout(t) for key, t in inputs.items()}
        if wide or self._autocast is None:
            return self.call.run(inputs, wide)
        with torch.autocast(self._device.type, dtype=self._autocast):
            return self.call.run(inputs, wide)

    @staticmethod
    def _tensors(result):
        found = [part.detach() for part in parts_of(result) if isinstance(part, torch.Tensor)]
        if any(t.layout != torch.strided or t.is_quantized for t in found):
            raise Refused("its result is not a plain tensor")
        return [t.clone() for t in found]

    def results(self, inputs):
        """The tensors that the call gives for other inputs."""
        return self._tensors(self.run(inputs))

    def holds(self, change, places, lowest):
        """Whether the function in float64 gives the same elements with the change."""
        inputs = {key: widen(self.call.tensors[key]) for key in self.call.tensors}
        changed = {key: change.apply(t, places.get(key, ()), lowest) for key, t in inputs.items()}
        try:
            found = self._tensors(self.run(changed, wide=True))
        except (*REFUSALS, Refused):
            return False
        if len(found) != len(self.exact):
            return False
        pairs = [change.align(got, whole) for got, whole in zip(found, self.exact)]
        return all(pair is not None and same(*pair) for pair in pairs)

    def pairs(self, change, places, lowest):
        """What the call gives with the change, beside the same elements without it."""
        changed = {key: change.apply(t, places.get(key, ()), lowest) for key, t in self.inputs.items()}
        found = self.results(changed)
        return [change.align(got, whole) for got, whole in zip(found, self.whole)]


class Relations:
    """The cells of one call."""

    def __init__(self, experiment, request, places):
        self._of, self._request, self._places = experiment, request, places

    def cell(self, relation):
        """(detail, pairs) of a relation. Refused where it says nothing about the function."""
        return getattr(self, "_" + relation.replace(" ", "_"))()

    # The same elements in other company.

    def _row_alone(self):
        return self._batch("row alone", lambda rows: [[row] for row in sorted({0, rows // 2, rows - 1})])

    def _half_batch(self):
        some = self._request["rows"]

        def parts(rows):
            part = min(some or rows // 2, rows)
            return [list(range(at, min(at + part, rows))) for at in range(0, rows, part)][: 8 if some else 2]

        return self._batch("half batch", parts)

    def _permuted_rows(self):
        return self._batch("permuted rows", lambda rows: [list(range(rows))[::-1]])

    def _batch(self, relation, parts):
        sizes = {t.shape[0] for t in self._of.whole if t.dim()}
        inputs = {t.shape[0] for t in self._of.call.tensors.values() if t.dim()}
        batch = self._request["batch"]
        if batch > 1 and not any(size % batch == 0 for size in inputs):
            raise Unconcerned("it has no batch")
        if len(sizes) != 1 or not sizes <= inputs or (size := sizes.pop()) < 2:
            raise Refused("no dimension is a batch")
        unit = size // batch if batch > 1 and size % batch == 0 else 1
        if size // unit < 2:
            raise Refused("no dimension is a batch")
        changes = []
        for rows in parts(size // unit):
            changes.append(Change(size, [row * unit + at for row in rows for at in range(unit)], rows=True))
        return self._measure(relation, changes, [(size, True)])

    def _chunked(self):
        length = self._length()
        part = min(self._request["chunk"] or max(length // 2, 1), length)
        pieces = [list(range(at, min(at + part, length))) for at in range(0, length, part)][:8]
        if len(pieces) < 2:
            raise Refused("there is no more than one chunk")
        return self._along("chunked", pieces, prefix=True)

    def _padded(self):
        length, pad = self._length(), self._request["pad"]
        index = list(range(length))
        return self._along("padded", [index + [-1] * pad if pad > 0 else [-1] * -pad + index])

    def _length(self):
        return self._request["sequence"] or self._request["batch"]

    def _along(self, relation, parts, prefix=False):
        """Along the positions of a sequence; without one, along the rows of the batch."""
        length, batch = self._length(), self._request["batch"] if self._request["sequence"] else 0
        if length < 2:
            raise Refused("no dimension is a sequence")
        sizes = [(length, not self._request["sequence"])]
        rows = not self._request["sequence"]
        changes = {length: [Change(length, part, rows) for part in parts]}
        if batch > 1 and batch * length != length:  # positions of all rows in one dimension
            sizes.append((batch * length, True))
            changes[batch * length] = [
                Change(
                    batch * length,
                    [-1 if at < 0 else row * length + at for row in range(batch) for at in part],
                    rows=True,
                )
                for part in parts
            ]
        if not any(size in t.shape for t in self._of.call.tensors.values() for size, _ in sizes):
            raise Unconcerned("it has no sequence" if self._request["sequence"] else "it has no batch")
        pairs, details = [], []
        for size, first_only in sizes:
            try:
                detail, found = self._measure(relation, changes[size], [(size, first_only)], prefix)
            except Refused:
                continue
            pairs += found
            details.append(detail)
        if not pairs:
            raise Refused("no dimension is a sequence")
        return "; ".join(details), pairs

    def _measure(self, relation, changes, sizes, prefix=False):
        """All changes, or where the first alone keeps the result (the prefix of what is causal) that one."""
        pairs, details = [], []
        for size, first_only in sizes:
            key = (relation, size)
            known = self._places.get(key)
            if known is None or (known and not self._of.holds(changes[0], *known)):
                known = self._places[key] = self._search(changes[0], size, first_only)
            if not known:
                continue
            for number, change in enumerate(changes):
                if number and not self._of.holds(change, *known):
                    if prefix:
                        break
                    continue
                pairs += self._of.pairs(change, *known)
            details.append(", ".join(f"{key} {list(dims)}" for key, dims in known[0].items()))
        if not pairs:
            raise Refused("it does not work row by row" if sizes[0][1] else "no dimension is a sequence")
        return "; ".join(details), pairs

    def _search(self, change, size, first_only):
        ways = placements(self._of.call.tensors, size, first_only)
        if not ways:
            return ()
        for way in ways:  # those with most dimensions first, whatever stands in the padded places
            for lowest in (False, True) if -1 in change.index else (False,):
                if self._of.holds(change, way, lowest):
                    return way, lowest
        return ()

    # The same inputs in other surroundings.

    def _pairs(self, found):
        if [t.shape for t in found] != [t.shape for t in self._of.whole]:
            raise Refused("it gives results of other shapes")
        return list(zip(found, self._of.whole))

    def _again(self):
        return "", [pair for _ in range(REPEATS) for pair in self._pairs(self._of.results(self._of.inputs))]

    def _strided(self):
        pairs, kept = [], self._of.inputs
        for spread in (every_second, turned):
            laid = {key: spread(t) for key, t in kept.items()}
            if all(a is b for a, b in zip(laid.values(), kept.values())):
                continue
            first = next(key for key in kept if laid[key] is not kept[key])
            for inputs in (laid, {**kept, first: laid[first]}):
                try:
                    pairs += self._pairs(self._of.results(inputs))
                except REFUSALS:  # a view of a tensor that has to lie in one piece
                    continue
        if not pairs:
            raise Refused("its inputs lie in one way only")
        return "", pairs

    def _other_threads(self):
        threads = torch.get_num_threads()
        if self._of.whole[0].device.type != "cpu":
            raise Refused("threads are those of the CPU")
        torch.set_num_threads(1 if threads > 1 else 2)
        try:
            return f"{torch.get_num_threads()} for {threads}", self._pairs(self._of.results(self._of.inputs))
        finally:
            torch.set_num_threads(threads)

    def _other_dtype(self):
        if self._of._autocast is not None:
            raise Refused("its dtype is that of autocast")
        here = next((t.dtype for t in self._of.inputs.values() if t.is_floating_point()), None)
        other = {torch.float32: torch.bfloat16, torch.float64: torch.float32}.get(here, torch.float32)
        if here is None:
            raise Refused("it has no floating-point input")
        inputs = {key: t.to(other) if t.dtype == here else t for key, t in self._of.inputs.items()}
        return str(other).rpartition(".")[2], self._pairs(self._of.results(inputs))

    def _deterministic(self):
        before, fill = torch.are_deterministic_algorithms_enabled(), _compat.Fill()
        torch.use_deterministic_algorithms(not before)
        filled = fill.set(False)
        try:
            return "", self._pairs(self._of.results(self._of.inputs))
        except RuntimeError as error:
            if "deterministic" not in str(error):
                raise
            raise Refused("it has no deterministic kernel") from error
        finally:
            torch.use_deterministic_algorithms(before)
            fill.set(filled)

    def _compiled(self):
        call, function = self._of.call, self._of.call.function
        refused = importlib.import_module(
            "torch._dynamo.exc"
        ).TorchDynamoException  # a second, which others need not wait
        torch._dynamo.reset()
        call.function = torch.compile(lambda *args, **kwargs: function(*args, **kwargs), dynamic=False)
        try:
            return "", self._pairs(self._of.results(self._of.inputs))
        except (*REFUSALS, refused) as error:
            raise Refused(f"torch.compile refuses it ({type(error).__name__})") from error
        finally:
            call.function = function

    def _float64(self):
        pairs = [
            (a, b.to(a.device))
            for a, b in zip(self._of.whole, self._of.exact)
            if a.shape == b.shape and (a.is_floating_point() or a.is_complex())
        ]
        if not pairs:
            raise Refused("its results are no floating-point numbers")
        return "", pairs

    def _one_ulp(self):
        """The function in float64 of inputs that are all moved by one ulp of their dtype, up or down."""
        call, generator = self._of.call, torch.Generator().manual_seed(1)
        if not any(t.is_floating_point() for t in call.tensors.values()):
            raise Refused("it has no floating-point input")
        inputs = {key: nudged(t, generator) for key, t in call.tensors.items()}
        found = self._of._tensors(self._of.run(inputs, wide=True))
        pairs = [
            (a, b, whole.dtype)
            for a, b, whole in zip(found, self._of.exact, self._of.whole)
            if whole.is_floating_point() and a.shape == b.shape
        ]
        if not pairs:
            raise Refused("its results are no floating-point numbers")
        return "", pairs


class Bench:
    """Answers the requests of the command."""

    def __init__(self, device):
        self._functions, self._device, self._known = LabFunctions(), device, {}

    def answer(self, request):
        """The line and the tensors of one call."""
        call = LabCall(self._functions, request["call"], request["random"])
        if not any(t.numel() for t in call.tensors.values()):
            raise Refused("it has no tensor as input")
        experiment = Experiment(call, self._device, request["dtype"])
        shapes = [(key, str(t.dtype), list(t.shape)) for key, t in call.tensors.items()]
        spec = request["call"]
        signature = json.dumps([spec["owner"], spec["function"], spec["args"], spec["kwargs"], shapes])
        relations = Relations(experiment, request, self._known.setdefault(signature, {}))
        cells, blobs = [], []
        for relation in request["relations"]:
            try:
                with torch.no_grad():
                    detail, pairs = relations.cell(relation)
                cells.append({"relation": relation, "detail": detail, "pairs": [self._pair(p, blobs) for p in pairs]})
            except Refused as refusal:
                apart = isinstance(refusal, Unconcerned)
                cells.append({"relation": relation, "why": str(refusal), "apart": apart})
            except REFUSALS as error:
                text = str(error).strip().split("\n", 1)[0][:200]
                cells.append({"relation": relation, "why": f"torch refuses it ({type(error).__name__}: {text})"})
        return {
            "cells": cells,
            "shape": list(experiment.whole[0].shape),
            "dtype": str(experiment.whole[0].dtype),
        }, blobs

    @staticmethod
    def _pair(pair, blobs):
        item = {"as": str(pair[2])} if len(pair) > 2 else {}
        for name, tensor in zip(("got", "want"), pair):
            if tensor.is_complex():
                tensor = torch.view_as_real(tensor.resolve_conj())
            if not tensor.is_floating_point() and tensor.dtype != torch.bool:
                tensor = tensor.to(torch.int64)
            data = tensor.detach().cpu().resolve_neg().contiguous().view(-1)
            data = data.view(torch.uint8) if data.numel() else data.to(torch.uint8)
            blobs.append(data.numpy())
            item[name], item[name + "_bytes"] = str(tensor.dtype), data.numel()
        return item


def main():
    """Runs the process."""
    stream, say = channel()
    global torch
    try:
        import torch
    except ImportError:
        say({"error": f"{sys.executable} has no torch, with which ops are called again"})
        return
    import torch.overrides

    _replay.torch = _calls.torch = _lab.torch = _changes.torch = torch
    try:
        device = pick(sys.argv[1])
        torch.zeros(1, device=device)
    except REFUSALS as error:
        say({"error": f"torch has no device {sys.argv[1]} here ({str(error).strip().splitlines()[0][:200]})"})
        return
    bench = Bench(device)
    bound_memory()
    say({"torch": torch.__version__, "device": str(device), "threads": torch.get_num_threads()})
    for line in stream:
        try:
            value, blobs = bench.answer(json.loads(line))
        except Refused as refusal:
            say({"why": str(refusal)})
        except REFUSALS as error:
            text = str(error).strip().split("\n", 1)[0][:200]
            say({"why": f"torch refuses the call ({type(error).__name__}: {text})"})
        else:
            say(value, blobs)


if __name__ == "__main__":
    main()

"""Communications of a dump made again: a part of the process of acc_check.

A group of gloo processes on the loopback interface, one for each rank, makes the call with what the ranks put in, in float64. What the
training got is judged by that: a second run of gloo in the dtype would say nothing about the transport of the training.
"""

import contextlib
import io
import json
import math
import os
import select
import signal
import socket
import tempfile
from datetime import timedelta

from _calls import dtype_of, read_tensor
from _replay import REFUSALS, TAIL, Refused, measure, tensors_in

torch = None  # set by the process

# Functions that are made again, and the parameter that each fills.
FILLED = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "scatter": "tensor",
    "recv": "tensor",
    "irecv": "tensor",
    "gather": "gather_list",
    "all_gather": "tensor_list",
    "all_gather_into_tensor": "output_tensor",
    "all_gather_single": "output_tensor",
    "_all_gather_base": "output_tensor",
    "reduce_scatter": "output",
    "reduce_scatter_tensor": "output",
    "reduce_scatter_single": "output",
    "_reduce_scatter_base": "output",
    "all_to_all": "output_tensor_list",
    "all_to_all_single": "output",
}
SENDS = ("send", "isend")
# Of each parameter its place, also where torch has no such function any more.
PLACES = {
    "all_reduce": ("tensor", "op", "group", "async_op"),
    "broadcast": ("tensor", "src", "group", "async_op", "group_src"),
    "reduce": ("tensor", "dst", "op", "group", "async_op", "group_dst"),
    "scatter": ("tensor", "scatter_list", "src", "group", "async_op", "group_src"),
    "gather": ("tensor", "gather_list", "dst", "group", "async_op", "group_dst"),
    "send": ("tensor", "dst", "group", "tag", "group_dst"),
    "recv": ("tensor", "src", "group", "tag", "group_src"),
    "all_gather": ("tensor_list", "tensor", "group", "async_op"),
    "all_gather_into_tensor": ("output_tensor", "input_tensor", "group", "async_op"),
    "reduce_scatter": ("output", "input_list", "op", "group", "async_op"),
    "reduce_scatter_tensor": ("output", "input", "op", "group", "async_op"),
    "all_to_all": ("output_tensor_list", "input_tensor_list", "group", "async_op"),
    "all_to_all_single": ("output", "input", "output_split_sizes", "input_split_sizes", "group", "async_op"),
}
SAME_AS = {
    "isend": "send",
    "irecv": "recv",
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
}
REDUCING = (
    *("all_reduce", "reduce"),
    *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base"),
)
SUMS = ("SUM", "AVG")
CHOOSES = ("MIN", "MAX", "BAND", "BOR", "BXOR")
MOST_SECONDS = 120  # of a call
MOST_BYTES = 1 << 31


def is_tensor(leaf):
    """Whether it is the entry of a tensor."""
    return isinstance(leaf, dict) and "dtype" in leaf and "shape" in leaf


def widened(tensor):
    """In float64; integers as they are."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor.clone()


def sized(tensor):
    """The absolute values; of complex numbers those of both parts."""
    tensor = widened(tensor)
    return torch.complex(tensor.real.abs(), tensor.imag.abs()) if tensor.is_complex() else tensor.abs()


class Member:
    """The call of one rank: its arguments by name, as the dump has them before and after it."""

    def __init__(self, entry):
        self.rank, self.api, self.files = entry["rank"], entry["api"], entry["files"]
        op = entry["op"]
        names = PLACES[SAME_AS.get(self.api, self.api)]
        args, kwargs = op.get("input_args") or op.get("input") or [], op.get("input_kwargs") or {}
        if len(args) > len(names):
            raise Refused(f"{self.api} has arguments that are not known")
        after = op.get("output") or []
        after = after if isinstance(after, list) else [after]
        given = [*zip(names, args), *kwargs.items()]
        self.before = dict(given)
        self.after = {name: value for (name, _), value in zip(given, after)}

    def read(self, leaf):
        """The tensor of an entry."""
        path = self.files.get(leaf.get("data_name"))
        if path is None:
            raise Refused(f"the dump of rank {self.rank} has no values of a tensor")
        return read_tensor(path)

    def results(self):
        """What the training got."""
        return [self.read(leaf) for leaf in flat(self.after.get(FILLED[self.api])) if is_tensor(leaf)]

    def reduction(self):
        """The name of the reduction, "" of a call that has none."""
        if self.api not in REDUCING:
            return ""
        op = self.before.get("op")
        name = "SUM" if op is None else str(op.get("value", "") if isinstance(op, dict) else op).rpartition(".")[2]
        if name not in (*SUMS, *CHOOSES, "PRODUCT"):
            raise Refused(f"the reduction {name[:40]} is not made again")
        return name

    def root(self, ranks):
        """Which of the processes is the root or the partner, if the call has one."""
        for name in ("src", "dst"):
            if (value := number(self.before.get(name))) is not None:
                return {name: ranks.index(value)}
            if (value := number(self.before.get(f"group_{name}"))) is not None:
                group = self.before.get("group")
                known = group.get("group_ranks") if isinstance(group, dict) else ranks
                return {name: ranks.index(known[value])}
        return {}

    def arguments(self, change):
        """Tensors by the names of their parameters, those that are filled as zeros."""
        made = {}
        for name, before in self.before.items():
            if name in ("op", "group", "async_op", "tag", "src", "dst", "group_src", "group_dst"):
                continue
            value = self._value(before, self.after.get(name), change)
            if value is not None:
                made[name] = value
        return made

    def _value(self, before, after, change):
        if is_tensor(before):
            return change(self.read(before))
        if before is None and is_tensor(after):
            if math.prod(after["shape"]) * 8 > MOST_BYTES:
                raise Refused(f"a tensor of the shape {after['shape']} is too large")
            return widened(torch.zeros(after["shape"], dtype=dtype_of(after["dtype"])))
        if isinstance(before, list) or (before is None and isinstance(after, list)):
            rest = after if isinstance(after, list) else []
            before = before if before is not None else [None] * len(rest)
            rest = [*rest, *[None] * (len(before) - len(rest))]
            return [self._value(a, b, change) for a, b in zip(before, rest)]
        return before.get("value") if isinstance(before, dict) else before


def number(leaf):
    """An int of a dump."""
    value = leaf.get("value") if isinstance(leaf, dict) else leaf
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flat(value):
    """The parts of lists, one by one."""
    return [part for piece in value for part in flat(piece)] if isinstance(value, list) else [value]


def make(request, rank):
    """Makes the call of one process. Returns what it fills."""
    member = Member(request["members"][rank])
    change = sized if request["absolute"] else widened
    arguments = member.arguments(change)
    ranks = [entry["rank"] for entry in request["members"]]
    reduction = member.reduction()
    if reduction:
        arguments["op"] = getattr(torch.distributed.ReduceOp, "SUM" if reduction == "AVG" else reduction)
    api = member.api.removeprefix("i") if member.api in ("isend", "irecv") else member.api
    function = getattr(torch.distributed, api, None) or getattr(torch.distributed, SAME_AS.get(api, api))
    function(**arguments, **member.root(ranks))
    if api in SENDS:
        return []
    results = tensors_in(arguments.get(FILLED[api]))
    return [tensor / len(ranks) for tensor in results] if reduction == "AVG" else results


def serve(rank, size, store, stream):
    """One of the processes: lines come in, a line goes out to each, and the bytes of what was filled where they are asked for."""
    torch.set_num_threads(1)  # threads of the process that was forked are not here
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group(
        "gloo",
        store=torch.distributed.FileStore(store, size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=MOST_SECONDS / 2),
    )
    for line in stream:
        request, blob, answer = json.loads(line), b"", {}
        try:
            results = make(request, rank)
            if request["members"][rank]["own"]:
                file = io.BytesIO()
                torch.save([tensor.contiguous().clone() for tensor in results], file)
                blob = file.getvalue()
        except Refused as refusal:
            answer = {"why": str(refusal)}
        except REFUSALS as error:
            text = str(error).strip().split("\n", 1)[0][:200]
            answer = {"why": f"gloo refuses the call ({type(error).__name__}: {text})"}
        stream.write(json.dumps({**answer, "bytes": len(blob)}).encode() + b"\n" + blob)
        stream.flush()


class Gloo:
    """Processes that are one group."""

    def __init__(self, size):
        self._folder = tempfile.TemporaryDirectory(prefix="msprobe_gloo_")
        self._pids, self._streams, self._sockets = [], [], []
        for rank in range(size):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                self._become(rank, size, theirs, [ours, *self._sockets])
            theirs.close()
            ours.settimeout(MOST_SECONDS)
            self._pids.append(pid)
            self._sockets.append(ours)
            self._streams.append(ours.makefile("rwb"))

    def _become(self, rank, size, theirs, others):
        """Never returns. Ends when the other end of its socket is closed."""
        code = 1
        try:
            for other in others:
                os.close(other.fileno())
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)  # the socket to the command
            os.dup2(nothing, 2)  # gloo writes of every partner that goes
            serve(rank, size, os.path.join(self._folder.name, "store"), theirs.makefile("rwb"))
            code = 0
        finally:
            os._exit(code)

    def call(self, request):
        """What the process of the own rank fills."""
        line = json.dumps(request).encode() + b"\n"
        for stream in self._streams:
            stream.write(line)
            stream.flush()
        found, waiting = [], dict(zip(self._sockets, self._streams))
        while waiting:
            # The first that refuses leaves the others waiting for it.
            ready = select.select(list(waiting), [], [], MOST_SECONDS)[0]
            if not ready:
                raise TimeoutError
            for ours in ready:
                stream = waiting.pop(ours)
                answer = json.loads(stream.readline() or b'{"why": "its gloo process ended", "bytes": 0}')
                blob = stream.read(answer["bytes"]) if "why" not in answer else b""
                if "why" in answer:
                    raise Refused(answer["why"])
                if blob:
                    found = torch.load(io.BytesIO(blob), weights_only=True)
        return found

    def end(self):
        """Ends the processes."""
        for stream, ours in zip(self._streams, self._sockets):
            with contextlib.suppress(OSError, ValueError):  # what a process did not read
                stream.close()
            ours.close()
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._folder.cleanup()


class Collectives:
    """Makes communications again; keeps the processes of the last group."""

    def __init__(self):
        self._size, self._gloo = 0, None

    def made(self, members, absolute=False):
        """What the own rank gets, in float64; `absolute`: of the absolute values of what the ranks put in."""
        if self._size != len(members):
            self.end()
            self._size, self._gloo = len(members), Gloo(len(members))
        try:
            return self._gloo.call({"members": members, "absolute": absolute})
        except (Refused, OSError, ValueError) as error:
            self.end()
            if isinstance(error, Refused):
                raise
            raise Refused(f"its gloo processes did not come to an end ({type(error).__name__})") from None

    def end(self):
        """Ends the processes."""
        if self._gloo is not None:
            self._gloo.end()
        self._size, self._gloo = 0, None

    def check(self, request, answer, attach):
        """Adds the results of one call and how far each is from the truth. Returns results and truths."""
        members = request["members"]
        for entry in members:
            if entry["api"] not in FILLED and entry["api"] not in SENDS:
                raise Refused(f"{entry['api']} is not made again")
        own = Member(next(entry for entry in members if entry["own"]))
        reduction = own.reduction()
        results, truths = own.results(), self.made(members)
        if not results or [t.shape for t in results] != [t.shape for t in truths]:
            raise Refused("the recording has other results than the call among gloo processes")
        wide = reduction in SUMS and (results[0].is_floating_point() or results[0].is_complex())
        sizes = self.made(members, absolute=True) if wide else [None] * len(truths)
        found = [self._figures(*part, reduction, len(members)) for part in zip(results, truths, sizes)]
        off = any(item["error"] > item["limit"] for item, _ in found)
        if off and reduction and not request["known"]:
            raise Refused(
                f"its result is not that of the {len(members)} ranks whose dumps are here, and the dump does not say how many ranks "
                "there were"
            )
        for result, truth, (figures, distance) in zip(results, truths, found):
            answer.add("forward", result, truth)
            item = answer.line["forward"][-1]
            item |= figures
            if distance is not None:
                attach(item, "bound_bytes", distance)
        return results, truths

    @staticmethod
    def _figures(result, truth, size, reduction, count):
        """Error and limit in ulp, and the bound of each element."""
        if not (result.is_floating_point() or result.is_complex()):
            same = torch.equal(result, truth.to(result.dtype))
            return {"rule": "exact", "error": 0.0 if same else math.inf, "limit": 0.5}, None
        eps = torch.finfo(result.dtype).eps
        found = {"error": measure(result, truth) / eps, "terms": count, "condition": 1.0}
        twice = 2 if eps < 1e-10 else 1  # the truth is rounded, too
        if size is None and reduction != "PRODUCT":
            return {**found, "rule": "exact", "limit": 0.51, "ulps": 0.5}, None
        if size is None:
            return {**found, "rule": "terms", "limit": twice * (1.0 + count), "ulps": twice * (1.0 + count)}, None
        # Each partial sum is rounded, also where halves travel.
        steps = twice * TAIL * math.sqrt(count) / 2
        whole = truth.norm().item()
        condition = size.norm().item() / whole if whole > 0 else math.inf
        condition = max(condition, 1.0) if math.isfinite(condition) else 1.0
        limit = twice * (1.0 + (reduction == "AVG")) + steps * condition
        size = torch.view_as_real(size) if size.is_complex() else size
        distance = (size * (steps * eps)).nan_to_num(0.0, 0.0, 0.0).to(torch.float32)
        return {
            **found,
            "rule": "terms",
            "limit": limit,
            "ulps": twice * (1.0 + (reduction == "AVG")),
            "condition": condition,
        }, distance

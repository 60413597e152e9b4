"""Each kernel of a compiled model, beside what eager and float64 make of the same inputs."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from ... import _compat
from .adapter import CompiledGraph, Layout, Seen, recording
from .changes import changes_of
from .drawn import drawn
from .reference import Draws, needed, value_of
from .repro import compiled_alone, failing_script

SAME, ROUND_OFF, COMPILED, EAGER, WRONG, UNKNOWN = (
    "same bits",
    "both round-off",
    "compiled nearer",
    "eager nearer",
    "compiled wrong",
    "not known",
)
_RUNS, _ULPS, _TIMES = 3, 8, 8  # of rounding errors that are tried; what is granted beside them
_FAR = 4  # times as far as eager is no matter of rounding
# What computing a part of a graph by itself may raise: then it is not judged.
REFUSALS = (RuntimeError, TypeError, ValueError, KeyError, IndexError, NotImplementedError)


class KernelRow(NamedTuple):
    """One result of one kernel.

    Attributes:
        graph: Number of the compiled graph.
        direction: `forward` or `backward`.
        kernel: Name of the kernel in the generated code.
        buffer: The result.
        node: FX node whose value it is.
        nodes: FX nodes that the kernel computes for it.
        lines: Source lines of these nodes, `model.py:12`.
        verdict: `same bits`, `both round-off`, `compiled nearer`, `eager nearer`, `compiled wrong` or `not known`.
        compiled: Distance of the compiled result from float64, in multiples of what rounding explains.
        eager: The same of eager.
        note: Why nothing is known, which nodes could not be judged where none is to blame, or how a recomputed value
            differs from that of the forward pass.
        blamed: Of a wrong result the first of `nodes` that Inductor compiles wrongly by itself; else empty.
        repro: Of a wrong result a script that was seen to fail in a fresh process; else empty.
    """

    graph: int
    direction: str
    kernel: str
    buffer: str
    node: str
    nodes: tuple
    lines: tuple
    verdict: str
    compiled: float
    eager: float
    note: str
    blamed: str = ""
    repro: str = ""


def _lines(graph: CompiledGraph, names: tuple) -> tuple:
    found = []
    for node in graph.fx.graph.nodes:
        if node.name in names:
            places = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
            if places:
                path, line = places[-1]
                found.append(f"{path.rsplit('/', 1)[-1]}:{line}")
    return tuple(dict.fromkeys(found))


def _distance(value: torch.Tensor, truth: torch.Tensor, bound: torch.Tensor) -> float:
    """How far a result is from the truth, in multiples of what rounding explains."""
    value, there = value.double(), torch.isfinite(truth)
    if not torch.equal(torch.isnan(value), torch.isnan(truth)):
        return float("inf")
    infinite = torch.isinf(truth)
    if not torch.equal(value[infinite], truth[infinite]):
        return float("inf")
    apart = (value[there] - truth[there]).abs()
    return (apart / bound[there]).max().item() if apart.numel() else 0.0


def bound_of(truths: list, dtype: torch.dtype) -> torch.Tensor:
    """How far from the truth rounding takes a result of this dtype, element by element.

    Args:
        truths: The result in float64, then with rounding errors put in.
        dtype: A floating-point dtype.

    Returns:
        The distances.
    """
    info, truth = torch.finfo(dtype), truths[0]
    finite = truth[torch.isfinite(truth)]
    largest = finite.abs().max().item() if finite.numel() else 0.0
    spread = torch.zeros_like(truth)
    for moved in truths[1:]:
        spread = torch.maximum(spread, torch.nan_to_num((moved - truth).abs(), posinf=0.0))
    return _ULPS * info.eps * truth.abs() + _TIMES * spread + info.eps * largest + info.smallest_normal


def _judge(compiled: torch.Tensor, eager: torch.Tensor, truths: list) -> tuple[str, float, float]:
    if torch.equal(compiled, eager):
        return SAME, 0.0, 0.0
    truth = truths[0]
    if not compiled.is_floating_point():
        # A comparison or a choice that rounding decides is no fault.
        steady = torch.ones_like(compiled, dtype=torch.bool)
        for moved in truths[1:]:
            steady &= moved == truth
        wrong = (compiled != eager) & (compiled != truth) & steady
        return (WRONG if wrong.any() else ROUND_OFF), float(wrong.any()), 0.0
    bound = bound_of(truths, compiled.dtype)
    ours, theirs = _distance(compiled, truth, bound), _distance(eager, truth, bound)
    if ours <= 1 and theirs <= 1:
        return ROUND_OFF, ours, theirs
    if ours <= 1:
        return COMPILED, ours, theirs
    return (WRONG if ours > _FAR * max(theirs, 0.25) else EAGER if theirs < ours else COMPILED), ours, theirs


class _Wanted(NamedTuple):
    """Whose value a result is."""

    node: str
    taken: Optional[Callable] = None  # takes the result out of the node's value, where it is a part of it
    certain: bool = True
    changed: bool = True  # whether it is the value after all that the graph writes into it


class _Graph:
    """The rows of one compiled graph."""

    def __init__(self, number: int, graph: CompiledGraph, forward: dict, repro_dir: str) -> None:
        self._number, self._graph, self._forward, self._repro_dir = number, graph, forward, repro_dir
        self._nodes = {node.name: node for node in graph.fx.graph.nodes}
        self._meta = {name: node.meta.get("val") for name, node in self._nodes.items()}

    def rows(self) -> list[KernelRow]:
        code, found = self._graph.code, []
        for seen in self._graph.seen:
            for name, value in seen.after.items():
                used = code.used_after(name, seen.call.line)
                if not used and name in seen.call.updated:
                    continue  # memory of a step within the kernel, which holds the last of them or one before
                row = self._row(seen, name, value)
                if used or row.node:
                    found.append(row)
        return found

    def _known(self, seen: Seen) -> dict:
        """Values of FX nodes before a kernel: the inputs of the graph, and the buffers that the kernel reads."""
        known = {name: value for name, value in self._graph.inputs.items() if name in self._meta}
        changes = changes_of(self._graph.fx.graph)
        for buffer, value in seen.before.items():
            node = self._graph.node_of.get(buffer)
            if self._has_value(node, value) and not changes.is_changed_between(node):
                known[node] = value
        return known

    def _has_value(self, node: Optional[str], value: torch.Tensor) -> bool:
        shown = self._meta.get(node)
        return isinstance(shown, torch.Tensor) and shown.shape == value.shape and shown.dtype == value.dtype

    def _wanted(self, seen: Seen, buffer: str, value: torch.Tensor) -> Optional[_Wanted]:
        """Whose value a result is; None where it is not known."""
        graph = self._graph
        node = graph.node_of.get(buffer, "")
        if graph.code.holds(buffer, seen.call.line + 1):
            if self._has_value(node, value):
                return _Wanted(node)
            part, layout = graph.code.parts.get(buffer), graph.layout_of.get(buffer)
            if part and layout and part.whole in graph.layout_of:
                return self._out_of(graph.node_of.get(part.whole), graph.layout_of[part.whole], layout, part.offset)
            node, whole = graph.returned.get(buffer, ("", None))
            if whole and layout and math.prod(whole.size) == math.prod(layout.size):
                return self._out_of(node, whole, layout, 0)
            return self._argument(graph.argument_of.get(buffer), buffer, value)
        return self._first(node, value) or self._argument(graph.argument_of.get(buffer), buffer, value)

    def _out_of(self, node: Optional[str], whole: Layout, part: Layout, offset: int) -> Optional[_Wanted]:
        """A part of the memory that a node's value has."""
        if not self._has_value(node, torch.empty(whole.size, dtype=whole.dtype, device="meta")):
            return None
        return _Wanted(node, lambda value: part.part(whole.of(value), offset))

    def _first(self, node: str, value: torch.Tensor) -> Optional[_Wanted]:
        """Of what a node such as `index_put` is put into: what is in it before."""
        arguments = self._nodes[node].args if node in self._nodes else ()
        first = getattr(arguments[0], "name", None) if arguments else None
        return _Wanted(first, certain=False, changed=False) if self._has_value(first, value) else None

    def _argument(self, library: Optional[str], buffer: str, value: torch.Tensor) -> Optional[_Wanted]:
        """Of a result that is made for a library's kernel: the only one of its arguments that it can be."""
        found = [source.name for source in self._nodes[library].all_input_nodes] if library in self._nodes else []
        near = [name for name in found if name in self._graph.nodes_of[buffer]]
        for names in (near, found):
            if same := [name for name in names if self._has_value(name, value)]:
                return _Wanted(same[0], certain=False) if len(same) == 1 else None
        if value.dtype == torch.int64:  # what is counted or summed, such as the results of a comparison
            if same := [name for name in near if self._has_value(name, value.bool())]:
                return _Wanted(same[0], lambda value: value.long(), certain=False) if len(same) == 1 else None
        return None

    def _row(self, seen: Seen, buffer: str, value: torch.Tensor) -> KernelRow:
        graph = self._graph
        verdict, ours, theirs = UNKNOWN, 0.0, 0.0
        known: dict = {}
        nodes = graph.nodes_of.get(buffer, ())
        wanted = self._wanted(seen, buffer, value)
        node, note = (wanted.node, "") if wanted else ("", "no FX node has this value")
        if wanted:
            known = self._known(seen)
            known |= drawn(graph.fx.graph, node, known)
            nodes = tuple(n.name for n in needed(graph.fx.graph, node, known, wanted.changed)) or nodes
            try:
                verdict, ours, theirs = self._compare(wanted, known, value)
            except Draws as draw:
                note = f"{draw} draws random numbers"
            except REFUSALS as error:
                note = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            note = note or ("" if wanted.taken else self._against_forward(node, value))
        direction = "backward" if graph.backward else "forward"
        blamed, repro, unjudged = "", "", ()
        if verdict == WRONG:
            blamed, repro, unjudged = self._shown(buffer, wanted, nodes, known)
        if unjudged and not blamed:
            note = "; ".join(filter(None, (note, f"not to be computed alone: {', '.join(unjudged)}")))
        if verdict == WRONG and not wanted.certain and not blamed:
            verdict, note = UNKNOWN, f"it is not certain that this is the value of {node}"
        lines = _lines(graph, (blamed,) if blamed else nodes)
        name = seen.call.kernel
        return KernelRow(
            self._number, direction, name, buffer, node, nodes, lines, verdict, ours, theirs, note, blamed, repro
        )

    def _truths(self, wanted: _Wanted, known: dict) -> list:
        """The value in float64, then with rounding errors put in."""
        moved = (torch.Generator().manual_seed(seed) for seed in range(_RUNS))
        with torch.no_grad():
            return [
                value_of(self._graph.fx, wanted.node, known, True, generator, wanted.changed)
                for generator in (None, *moved)
            ]

    def _compare(self, wanted: _Wanted, known: dict, value: torch.Tensor) -> tuple[str, float, float]:
        with torch.no_grad():
            eager = value_of(self._graph.fx, wanted.node, known, changed=wanted.changed)
        truths = self._truths(wanted, known)
        if wanted.taken is not None:
            eager, truths = wanted.taken(eager), [wanted.taken(truth) for truth in truths]
        return _judge(value, eager, truths)

    def _shown(self, buffer: str, wanted: _Wanted, nodes: tuple, known: dict) -> tuple[str, str, tuple]:
        """The node that is wrong by itself, a script that fails, and the nodes that cannot be computed alone."""
        repro, unjudged = "", []
        if self._repro_dir and wanted.certain and self._meta[wanted.node].dtype.is_floating_point:
            name = f"graph{self._number}_{buffer}"
            truths = self._truths(_Wanted(wanted.node), known)
            repro = failing_script(self._repro_dir, name, self._graph.fx, wanted.node, known, truths, bound_of)
        known = dict(known)
        for one in (_Wanted(name, changed=False) for name in nodes):
            try:
                value = compiled_alone(self._graph.fx, one.node, known)
                if self._compare(one, known, value)[0] == WRONG:
                    return one.node, repro, tuple(unjudged)
                with torch.no_grad():
                    known[one.node] = value_of(self._graph.fx, one.node, known, changed=False)
            except (Draws, *REFUSALS):
                unjudged.append(one.node)
        return "", repro, tuple(unjudged)

    def _against_forward(self, node: str, value: torch.Tensor) -> str:
        """Of a value that the backward pass computes once more: whether it is that of the forward pass."""
        if not self._graph.backward:
            self._forward[node] = value
            return ""
        before = self._forward.get(node)
        if before is None or before.shape != value.shape or before.dtype != value.dtype:
            return ""
        differ = int((before != value).sum())
        return (
            f"recomputed: {differ} of {value.numel()} elements differ from the forward pass"
            if differ
            else "recomputed: the same"
        )


def check_kernels(
    function: Callable, *args: Any, backward: bool = True, repro_dir: str = "", **kwargs: Any
) -> list[KernelRow]:
    """Compiles a function or model with Inductor, runs it once, and judges every kernel that was generated.

    The kernels of the run get what the kernels before them computed, so that each row is about its own kernel. Eager and
    float64 compute the same FX nodes from the same inputs; how far rounding goes is found by computing in float64 with rounding
    errors of the dtypes put in after each node, and in sums after each addition.

    Args:
        function: What is compiled.
        *args: Its arguments.
        repro_dir: Directory for scripts that show wrong results; empty for none.
        backward: Whether to run the backward pass from the sum of its floating-point results.
        **kwargs: Its keyword arguments.

    Returns:
        A row for each result of each kernel, in the order of the run.

    Raises:
        MsprobeException: The Inductor of this release of PyTorch is not known.
    """
    with recording() as graphs:
        result = torch.compile(function, dynamic=False)(*args, **kwargs)
        if backward:
            flat = _compat.tree_leaves(result)
            outs = [t for t in flat if isinstance(t, torch.Tensor) and t.requires_grad]
            if outs:
                torch.autograd.backward([out.sum() for out in outs])
    rows: list[KernelRow] = []
    forward: dict = {}
    for number, graph in enumerate(graphs):
        rows += _Graph(number, graph, forward, repro_dir).rows()
    return rows

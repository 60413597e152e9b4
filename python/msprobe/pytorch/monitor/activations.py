"""Inputs and outputs of modules and their gradients.

The graph of the backward pass is not changed: a full backward hook of PyTorch puts a node at the inputs of the module, which
sums the gradients of their uses inside before those from outside join them, and so changes bits of the training. Here the
gradients of inputs are read at the edges that lead from the module to them, and summed apart.
"""

import functools
from collections.abc import Callable
from typing import Any, Optional

import torch

from ... import _core
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from .values import Values


class ModuleWatch:
    """The hooks of the modules of one monitor."""

    def __init__(
        self, config: MonitorConfig, board: Board, values: Values, micro_batches: int, guard: Callable
    ) -> None:
        """Knows where values go; add() hooks a module.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Takes tensors.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
        """
        self._config = config
        self._board = board
        self._values = values
        self._micro_batches = max(micro_batches, 1)
        self._guard = guard
        self._handles: list = []
        self._sites: list = []
        self._groups = 0
        self.armed = True
        self._unfinished: dict = {}  # id -> call whose gradients have begun to come
        self._depth = 0  # of hooked modules that run

    def add(self, module: torch.nn.Module, name: str) -> None:
        """Hooks a module whose rows begin with this name."""
        forward = not self._config.backward_only
        backward = not self._config.forward_only and not _has_old_backward_hook(module)
        site = _Site(name)
        self._sites.append(site)
        if backward:
            self._handles.append(
                module.register_forward_pre_hook(functools.partial(self._before, site), with_kwargs=True, prepend=True)
            )
        hook = functools.partial(self._after, site, forward, backward)
        self._handles.append(module.register_forward_hook(hook, with_kwargs=True))
        for wanted, table in ((forward, "actv"), (backward, "actv_grad")):
            if wanted:
                self._board.expect(table, name)
        if not self._config.forward_only and not backward:
            self._board.expect("actv_grad", name)
            self._board.why(
                "actv_grad", name, "it has a hook of register_backward_hook(), which PyTorch does not combine"
            )

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._sites.clear()
        self.next_step()

    def finish(self) -> None:
        """Takes what is left of gradients of which some never came."""
        unfinished, self._unfinished = self._unfinished, {}
        for call in unfinished.values():
            call.finish()

    def next_step(self) -> None:
        """The optimizer has stepped: calls count from 0 again."""
        self._unfinished.clear()
        self._depth = 0
        _core.forget_edges()
        for site in self._sites:
            site.forwards = site.backwards = 0
            site.open.clear()

    # ---- forward

    def _before(self, site: "_Site", module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        if not self.armed or _is_compiling():
            return
        self._depth += 1
        site.open.append(_core.next_sequence() if torch.is_grad_enabled() else 0)

    def _after(
        self,
        site: "_Site",
        forward: bool,
        backward: bool,
        module: torch.nn.Module,
        args: tuple,
        kwargs: dict,
        output: Any,
    ) -> Any:
        if not self.armed or _is_compiling():
            return None
        result: list = []
        self._guard(lambda: result.append(self._take(site, forward, backward, module, args, kwargs, output)))
        return result[0] if result else None

    def _take(
        self,
        site: "_Site",
        forward: bool,
        backward: bool,
        module: torch.nn.Module,
        args: tuple,
        kwargs: dict,
        output: Any,
    ) -> Any:
        # Inside a backward pass it is a recomputation, whose values were there before.
        recomputed = torch._C._current_graph_task_id() != -1
        if forward and not recomputed:
            self._take_forward(site, module, args, kwargs, output)
        result = None
        if backward and site.open:
            since = site.open.pop()
            if torch.is_grad_enabled():
                result = self._hook_backward(site, since, args, output)
            self._depth -= 1
            if self._depth <= 0:
                self._depth = 0
                _core.forget_edges()
        return result

    def _take_forward(self, site: "_Site", module: torch.nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        if not module.training:
            return
        if site.group is None:
            site.group = self._groups
            self._groups += 1
        inputs = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)]
        numbers: list = []
        tensors: list = []
        self._list(site, "actv", "input", site.forwards, inputs, numbers, tensors)
        self._list(site, "actv", "output", site.forwards, output, numbers, tensors)
        self._values.take(numbers, tensors, often=True)
        site.forwards = (site.forwards + 1) % self._micro_batches

    def _list(self, site: "_Site", table: str, side: str, micro: int, value: Any, numbers: list, tensors: list) -> None:
        if isinstance(value, torch.Tensor):
            value = (value,)
        if not isinstance(value, (list, tuple)):
            return
        for i, item in enumerate(value):
            key = (table, side, i if len(value) > 1 else -1, micro)
            number = site.numbers.get(key)
            if number is None:
                place = f"_{i}" if len(value) > 1 else ""
                group = site.group if table == "actv" else 0
                number = site.numbers[key] = self._board.series(
                    table, f"{site.name}.{side}{place}", table, micro, group or 0, of=site.name
                )
            numbers.append(number)
            tensors.append(item)

    # ---- backward

    def _hook_backward(self, site: "_Site", since: int, args: tuple, output: Any) -> Any:
        outputs = output if isinstance(output, tuple) else (output,)
        wanted = [i for i, t in enumerate(outputs) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not wanted:
            return None
        inputs = [t for t in args if isinstance(t, torch.Tensor) and t.requires_grad]
        edges = _core.input_edges([outputs[i] for i in wanted], since, inputs) if inputs else []
        call = _BackwardCall(self, site, len(args), len(outputs), len(edges), len(wanted))
        positions = [i for i, t in enumerate(args) if isinstance(t, torch.Tensor) and t.requires_grad]
        for node, slot, index in edges:
            # Of one tensor given twice the first place has the gradient.
            node.register_hook(functools.partial(call.input_gradient, positions[index], slot))
        replaced = None
        if len(wanted) > 1:
            # A node of its own for each: the module may use one output to make another.
            replaced = list(outputs)
            own = {id(t) for t in args}
            for i in wanted:
                if id(outputs[i]) not in own:
                    replaced[i] = outputs[i].view_as(outputs[i])
        for i in wanted:
            tensor = replaced[i] if replaced is not None else outputs[i]
            if not tensor.is_leaf:
                _hook_output(tensor, call, i)
        if replaced is None:
            return None
        return type(output)(*replaced) if hasattr(output, "_fields") else type(output)(replaced)


def _hook_output(tensor: torch.Tensor, call: "_BackwardCall", number: int) -> None:
    """Tells a call the gradient of its output. Of modules that return the same tensor the outermost is reported first."""
    calls = tensor.grad_fn.metadata.get((_MARK, tensor.output_nr))
    if calls is not None:
        calls.insert(0, (call, number))
        return
    calls = tensor.grad_fn.metadata[_MARK, tensor.output_nr] = [(call, number)]

    def arrived(gradient: torch.Tensor) -> None:
        for outer, place in calls:
            outer.output_gradient(place, gradient)

    tensor.register_hook(arrived)


_MARK = "msprobe.monitor"


class _Site:
    """What is known of a hooked module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group: Optional[int] = None
        self.forwards = self.backwards = 0
        self.open: list = []  # sequence numbers of the calls that have begun
        self.numbers: dict = {}


class _BackwardCall:
    """The gradients of one call of a module."""

    def __init__(self, watch: ModuleWatch, site: _Site, inputs: int, outputs: int, edges: int, wanted: int) -> None:
        self._watch, self._site = watch, site
        self._inputs: list = [None] * inputs
        self._outputs: list = [None] * outputs
        self._edges, self._wanted = edges, wanted
        self._seen = 0
        self._begun = self._done = False

    def output_gradient(self, number: int, gradient: Any) -> None:
        self._outputs[number] = gradient
        if not self._begun:
            self._begun = True
            self._watch._unfinished[id(self)] = self
        self._wanted -= 1
        if not self._edges and not self._wanted:
            self._watch._guard(self.finish)

    def input_gradient(self, position: int, slot: int, gradients: Any, _: Any) -> None:
        self._watch._guard(lambda: self._add(position, gradients[slot]))

    def _add(self, position: int, gradient: Any) -> None:
        self._seen += 1
        if gradient is not None:
            before = self._inputs[position]
            if before is None:
                self._inputs[position] = gradient
            elif torch.is_grad_enabled():  # a backward pass that is itself differentiated
                with torch.no_grad():
                    self._inputs[position] = before + gradient
            else:
                self._inputs[position] = before + gradient
        if self._seen == self._edges:
            self.finish()

    def finish(self) -> None:
        if self._done or not self._watch.armed:
            return
        self._done = True
        watch, site = self._watch, self._site
        numbers: list = []
        tensors: list = []
        watch._list(site, "actv_grad", "input", site.backwards, tuple(self._inputs), numbers, tensors)
        watch._list(site, "actv_grad", "output", site.backwards, tuple(self._outputs), numbers, tensors)
        watch._values.take(numbers, tensors, often=True)
        site.backwards = (site.backwards + 1) % watch._micro_batches
        self._inputs = self._outputs = []
        watch._unfinished.pop(id(self), None)


def _is_compiling() -> bool:
    return torch.compiler.is_compiling()


def _has_old_backward_hook(module: torch.nn.Module) -> bool:
    return bool(module._backward_hooks) and module._is_full_backward_hook is False

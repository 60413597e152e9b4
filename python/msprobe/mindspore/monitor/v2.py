"""TrainerMonitorV2 of MindSpore (PyNative mode): hooks of Cells and parameters, and the call of the optimizer."""

from collections.abc import Callable
from typing import Any

from mindspore import Tensor

from ..._capture.guard import shielded
from ..._capture.log import logger
from ..._monitor.v2_config import V2Config
from ..._monitor.v2_files import V2Files
from ..._monitor.v2_phases import V2Phases
from .. import cell_hooks, hooks
from ..framework import MindSpore
from .checks import FAULTS, check_models, check_optimizer
from .parameters import moments_of


class MonitorV2(V2Phases):
    """One process of TrainerMonitorV2."""

    faults = FAULTS

    def __init__(self, config: V2Config) -> None:
        """Makes the output directory, if this rank is monitored.

        Args:
            config: What is wanted.

        Raises:
            ValueError: The directory cannot be written.
        """
        hooks.init()
        super().__init__(config, MindSpore().rank_of_process() or 0)
        self._optimizer: Any = None
        self._parameters: list = []  # (parameter, name)

    def start(self, model: Any, optimizer: Any, **context: Any) -> None:
        """Hooks what the configuration asks for; see TrainerMonitorV2."""
        if self._files is None or self._parts:
            return
        kinds = self._config.monitors
        chunks = self._begin(model, optimizer, context)
        check_models([cell for _, cell in chunks])
        self._parameters = [(p, prefix + name) for prefix, cell in chunks for name, p in cell.parameters_and_names()]
        if optimizer is not None:
            check_optimizer(optimizer)
            self._optimizer = optimizer
            self._parts.append(cell_hooks.before(optimizer, self._before_step))
            self._parts.append(cell_hooks.after(optimizer, self._after_step))
        if "module" in kinds:
            self._watch_cells(chunks)
        if "weight_grad" in kinds:
            gradients = V2Gradients(self._files, self._guard, self._micro_batches)
            gradients.every = bool(kinds["weight_grad"].options.get("monitor_mbs_grad", False))
            self._add(gradients)
            for parameter, name in self._parameters:
                gradients.add(parameter, name)
        if "cc" in kinds:
            logger.warning("monitor: cc is left out: communications of MindSpore are not watched")
        self._arm()

    def _watch_cells(self, chunks: list) -> None:
        cells = V2Cells(self._files, self._guard)
        self._add(cells)
        for prefix, chunk in chunks:
            for name, cell in chunk.cells_and_names():
                if self._is_target(prefix + name):
                    cells.add(cell, prefix + name)

    def _add(self, part: Any) -> None:
        for parts in (self._parts, self._watching, self._counting):
            parts.append(part)

    # ---- a step

    def _before_step(self, cell: Any, arguments: Any) -> None:
        if self._armed:
            self._guard(self._take_before, arguments[0] if arguments else ())

    def _take_before(self, gradients: Any) -> None:
        rows = _Rows(self._files)
        if "weight_grad" in self._config.monitors and isinstance(gradients, (list, tuple)):
            by_parameter = {id(p): g for p, g in zip(self._optimizer.parameters, gradients)}
            for parameter, name in self._parameters:
                rows.add("weight_grad", name, "reduced", by_parameter.get(id(parameter)), self._micro_batches)
        self._list_parameters("param_origin", rows)
        rows.take()

    def _list_parameters(self, scope: str, rows: "_Rows") -> None:
        for parameter, name in self._parameters if "param" in self._config.monitors else ():
            rows.add("param", name, scope, parameter)

    def _after_step(self, cell: Any, arguments: Any, result: Any) -> None:
        if self._armed:
            self._guard(self._take_after)
        if self._by_optimizer:
            self._end_step()

    def _take_after(self) -> None:
        rows = _Rows(self._files)
        self._list_parameters("param_updated", rows)
        rows.take()

    def _collect(self) -> None:
        if "optimizer" not in self._config.monitors:
            return
        rows = _Rows(self._files)
        names = {id(p): name for p, name in self._parameters}
        for scope, moments in zip(("exp_avg", "exp_avg_sq"), moments_of(self._optimizer)):
            for parameter, moment in zip(self._optimizer.parameters, moments or ()):
                name = names.get(id(parameter))
                if name is not None:
                    rows.add("optimizer", f"{name}.{scope}", scope, moment)
        rows.take()


class _Rows:
    """Rows and their tensors."""

    def __init__(self, files: V2Files) -> None:
        self._files = files
        self._numbers: list = []
        self._tensors: list = []

    def add(self, kind: str, name: str, scope: str, tensor: Any, micro: Any = None) -> None:
        if isinstance(tensor, Tensor) and tensor.size:
            self._numbers.append(self._files.number(kind, name, scope, micro))
            self._tensors.append(tensor)

    def take(self) -> None:
        for i in self._files.take(self._numbers, self._tensors, 1):
            self._files.put(self._numbers[i], [])


class _V2Part:
    """Hooks that come off together."""

    def __init__(self, files: V2Files, guard: Callable) -> None:
        self._files, self._guard = files, guard
        self._handles: list = []
        self.armed = False

    def remove(self) -> None:
        """Removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def next_step(self) -> None:
        """The step has ended."""


class V2Cells(_V2Part):
    """Inputs of Cells when they begin, outputs when they end, gradients when they are there."""

    def add(self, cell: Any, name: str) -> None:
        """Hooks a Cell whose rows begin with this name."""

        def before(_: Any, inputs: Any) -> None:
            self._take(name, "forward", input=inputs)

        def after(_: Any, inputs: Any, output: Any) -> None:
            self._take(name, "forward", output=output)

        def backward(_: Any, to_inputs: Any, of_outputs: Any) -> None:
            self._take(name, "backward", grad_input=to_inputs, grad_output=of_outputs)

        self._handles.append(cell_hooks.before(cell, before))
        self._handles.append(cell_hooks.after(cell, after))
        self._handles.append(cell.register_backward_hook(shielded(backward)))

    def _take(self, name: str, scope: str, **sides: Any) -> None:
        if not self.armed:
            return
        rows = _Rows(self._files)
        for side, values in sides.items():
            tensors = [v for v in (values if isinstance(values, (list, tuple)) else [values]) if isinstance(v, Tensor)]
            for place, tensor in enumerate(tensors):
                rows.add("module", f"{name}.{side}.{place}", scope, tensor)
        self._guard(rows.take)


class V2Gradients(_V2Part):
    """Gradients of parameters as the backward pass gives them, of the last micro step or of each."""

    every = False

    def __init__(self, files: V2Files, guard: Callable, micro_batches: int) -> None:
        """Hooks nothing yet.

        Args:
            files: Where rows go.
            guard: Runs what must not stop the training.
            micro_batches: Backward passes of a step.
        """
        super().__init__(files, guard)
        self._micro_batches = micro_batches
        self._counts: dict = {}

    def add(self, parameter: Any, name: str) -> None:
        """Hooks a parameter that is trained."""
        if not parameter.requires_grad:
            return

        def hook(gradient: Any) -> None:
            self._take(name, gradient)

        self._handles.append(parameter.register_hook(shielded(hook)))

    def _take(self, name: str, gradient: Any) -> None:
        micro = self._counts[name] = self._counts.get(name, 0) + 1
        if not self.armed or (not self.every and micro < self._micro_batches):
            return
        rows = _Rows(self._files)
        rows.add("weight_grad", name, "unreduced", gradient, micro if self.every else self._micro_batches)
        self._guard(rows.take)

    def next_step(self) -> None:
        """Backward passes count from 0 again."""
        self._counts.clear()

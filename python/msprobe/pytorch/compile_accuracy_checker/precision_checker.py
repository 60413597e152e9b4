"""PrecisionChecker: modules compiled by torch.compile beside the same modules in eager."""

import contextlib
import functools
import hashlib
import math
import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Optional

import torch
from torch import nn

from ... import _compat
from ..hook_points import callback
from .results import IGNORED, CompareResult, ModuleDiff, diffs_of, rows_of, tensors_of, write_csv

_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


class _Part(nn.Module):
    """A compiled module in the place of the original, which it keeps."""

    def __init__(self, original: nn.Module, checker: "PrecisionChecker") -> None:
        super().__init__()
        self.original, self._cast = original, checker.cast_dtype
        self.compiled = [
            torch.compile(original, backend=checker._backend(), fullgraph=False)
        ]  # no submodule a second time
        self.kept: dict[str, Any] = {}
        self.keeps = False

    @_compat.disable_compiler
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the compiled module, and keeps what a comparison needs."""
        result = self.run(self.compiled[0], args, kwargs)
        if self.keeps:
            self.kept = {"args": args, "kwargs": kwargs, "result": result, "gradients": {}}
            for number, tensor in enumerate(tensors_of(result)):
                if tensor.requires_grad:
                    keep = functools.partial(_keep, self.kept["gradients"], number)
                    tensor.register_hook(callback(keep))
        return result

    def run(self, module: Any, args: tuple, kwargs: dict) -> Any:
        """Calls a module as the checker casts."""
        first = next(iter(tensors_of((args, kwargs))), None)
        if self._cast is None or first is None:
            return module(*args, **kwargs)
        with torch.autocast(first.device.type, dtype=self._cast):
            return module(*args, **kwargs)

    def gradients(self, module: Any) -> Optional[list]:
        """Gradients of the inputs from those of the results, through a module."""
        given = self.kept["gradients"]
        if not given:
            return None

        def leaf(value: Any) -> Any:
            floating = isinstance(value, torch.Tensor) and value.is_floating_point()
            return value.detach().clone().requires_grad_() if floating else value

        args, kwargs = torch.utils._pytree.tree_map(leaf, (self.kept["args"], self.kept["kwargs"]))
        with torch.enable_grad():
            results = tensors_of(self.run(module, args, kwargs))
        outs = [results[number] for number in given]
        inputs = [t for t in tensors_of((args, kwargs)) if t.requires_grad]
        found = torch.autograd.grad(outs, inputs, list(given.values()), allow_unused=True) if inputs else ()
        return [gradient for gradient in found if gradient is not None]


class PrecisionChecker:
    """Compares modules compiled by torch.compile with the same modules in eager.

    checker = PrecisionChecker(backend="inductor")
    checker.wrap_all_children(model)
    result = checker.compare(lambda model: model(batch).loss, model)
    checker.report(result, csv_path="compiled.csv")
    """

    def __init__(
        self,
        backend: str = "aot_eager",
        threshold: float = 1e-4,
        dump_graphs: bool = False,
        graph_dir: str = "./graph_dump",
        cast_dtype: Optional[torch.dtype] = None,
        capture_input: bool = True,
        single_pass: bool = True,
    ) -> None:
        """Keeps the settings.

        Args:
            backend: Backend of torch.compile.
            threshold: Has no effect: tensors are close within 1e-4 + 1e-3 of an element.
            dump_graphs: Whether the captured graphs are written to files.
            graph_dir: Directory of these files.
            cast_dtype: Dtype of autocast around the modules that are compiled.
            capture_input: Whether inputs are compared too, when both models run.
            single_pass: Whether only the compiled model runs, and each module is repeated in eager with its inputs; else both
                models run.
        """
        self.backend, self.threshold = backend, threshold
        self.dump_graphs, self.graph_dir = dump_graphs, graph_dir
        self.cast_dtype, self.capture_input, self.single_pass = cast_dtype, capture_input, single_pass
        self._wrapped: dict[int, nn.Module] = {}
        self._ignored: dict[int, nn.Module] = {}
        self._installed: Optional[nn.Module] = None
        self._parts: dict[str, _Part] = {}
        self._left_out: list[str] = []
        self._loss = math.nan

    def wrap(self, module: nn.Module, name: Optional[str] = None) -> nn.Module:
        """Has a module compiled.

        Args:
            module: A module of the model.
            name: For readers of the script only.

        Returns:
            The module.
        """
        self._wrapped[id(module)] = module
        return module

    def wrap_by_policy(self, model: nn.Module, module_types: tuple) -> nn.Module:
        """Has all modules of these types compiled.

        Args:
            model: Where to look for them.
            module_types: Classes of modules.

        Returns:
            The model.
        """
        for module in model.modules():
            if isinstance(module, tuple(module_types)):
                self.wrap(module)
        return model

    def wrap_all_children(self, model: nn.Module, depth: int = 1) -> nn.Module:
        """Has the modules `depth` levels below the children compiled, and leaves above; containers are no level.

        Returns:
            The model.
        """
        for child in model.children():
            if isinstance(child, _CONTAINERS):
                self.wrap_all_children(child, depth)
            elif depth <= 0 or not any(True for _ in child.children()):
                self.wrap(child)
            else:
                self.wrap_all_children(child, depth - 1)
        return model

    def ignore(self, module: nn.Module) -> nn.Module:
        """Leaves a module and what is below it out of the result. Returns it."""
        self._ignored[id(module)] = module
        return module

    def ignore_by_policy(self, model: nn.Module, module_types: tuple) -> nn.Module:
        """Leaves all modules of these types out of the result.

        Args:
            model: Where to look for them.
            module_types: Classes of modules.

        Returns:
            The model.
        """
        for module in model.modules():
            if isinstance(module, tuple(module_types)):
                self.ignore(module)
        return model

    def install(self, model: nn.Module) -> nn.Module:
        """Puts compiled modules into the model itself, for a script that goes on to train it; then collect().

        Args:
            model: The model that the script trains.

        Returns:
            The model, whose modules are compiled now.

        Raises:
            RuntimeError: With single_pass=False.
        """
        if not self.single_pass:
            raise RuntimeError(
                "install() compares each module with its own inputs: use PrecisionChecker(single_pass=True)"
            )
        torch._dynamo.reset()
        self._installed = self._compiled(model, model)
        self._keep(True)
        return self._installed

    def record_loss(self, loss: Any) -> None:
        """Takes the loss of the script, for the report."""
        self._loss = loss.item() if isinstance(loss, torch.Tensor) else float(loss)

    def collect(self, loss: Optional[torch.Tensor] = None) -> CompareResult:
        """Compares what the modules of install() computed last.

        Args:
            loss: The loss, if record_loss() has not got it.

        Returns:
            The result; `loss_eager` is NaN.
        """
        if loss is not None:
            self.record_loss(loss)
        result = CompareResult(math.nan, self._loss, self._diffs(), self.cast_dtype)
        self._keep(False)
        return result

    def compare(self, fn: Callable[[nn.Module], torch.Tensor], model: nn.Module) -> CompareResult:
        """Runs a step of training or inference and compares.

        Args:
            fn: Gets a model and returns the loss; for gradients it also calls backward().
            model: The model, which stays as it is.

        Returns:
            The result, a part for each module.
        """
        torch._dynamo.reset()
        copy = deepcopy(model)
        compiled = self._compiled(copy, model)
        if self.single_pass:
            self._keep(True)
            loss = fn(compiled.train())
            loss_eager, diffs = math.nan, self._diffs()
            self._keep(False)
        else:
            loss_eager, loss, diffs = self._both(fn, model, compiled)
        return CompareResult(loss_eager, float(loss.detach()), diffs, self.cast_dtype)

    def report(self, result: CompareResult, csv_path: Optional[str] = None) -> None:
        """Prints the result.

        Args:
            result: What compare() or collect() returned.
            csv_path: A file for the table; None for none.
        """
        for name, part, index, status, max_abs, mean_abs, max_rel, shape, note in rows_of(result):
            print(f"{status:5} {name:40} {part:11} {index:2}  {note or f'{max_abs} {mean_abs} {max_rel} {shape}'}")
        print(f"{'all are close' if result.all_pass else 'some are not close'} (atol 1e-4, rtol 1e-3)")
        if csv_path:
            write_csv(result, csv_path)

    # ---- what they are made of

    def _backend(self) -> Any:
        if not self.dump_graphs:
            return self.backend
        inner = _compat.compiler_backend(self.backend)

        def written(graph: torch.fx.GraphModule, inputs: list) -> Any:
            os.makedirs(self.graph_dir, exist_ok=True)
            text = graph.print_readable(print_output=False)
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            number = len(os.listdir(self.graph_dir))
            path = os.path.join(self.graph_dir, f"__compiled_fn_{number}.Captured_Graph.{digest}.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return inner(graph, inputs)

        return written

    def _compiled(self, target: nn.Module, model: nn.Module) -> nn.Module:
        """The target with compiled modules where the model has wrapped ones; of nested ones the outermost."""
        names = [name for name, module in model.named_modules() if id(module) in self._wrapped]
        self._left_out = [name for name, module in model.named_modules() if id(module) in self._ignored]
        self._parts = {}
        for name in names:
            if any(name != outer and (outer == "" or name.startswith(outer + ".")) for outer in names):
                continue
            part = _Part(target.get_submodule(name), self)
            self._parts[name or "model"] = part
            if name == "":
                return part
            parent, _, child = name.rpartition(".")
            setattr(target.get_submodule(parent), child, part)
        return target

    def _keep(self, keeps: bool) -> None:
        for part in self._parts.values():
            part.keeps = keeps

    def _is_left_out(self, name: str) -> bool:
        return any(name == left or name.startswith(left + ".") for left in self._left_out)

    def _diffs(self) -> list[ModuleDiff]:
        found = [ModuleDiff(name, note=IGNORED) for name in self._left_out]
        for name, part in self._parts.items():
            if self._is_left_out(name) or not part.kept:
                continue
            diff = ModuleDiff(name)
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                eager = part.run(part.original, *_detached(part.kept["args"], part.kept["kwargs"]))
            diff.fwd_output = diffs_of(eager, part.kept["result"])
            with contextlib.suppress(RuntimeError):  # what has no gradient through its inputs
                eager_grads, grads = part.gradients(part.original), part.gradients(part.compiled[0])
                diff.grad_input = diffs_of(eager_grads, grads) if eager_grads and grads else None
            found.append(diff)
        return sorted(found, key=lambda d: d.name)

    def _both(
        self, fn: Callable, model: nn.Module, compiled: nn.Module
    ) -> tuple[float, torch.Tensor, list[ModuleDiff]]:
        state = torch.get_rng_state()
        sides = []
        for side in (model, compiled):
            torch.set_rng_state(state)
            seen, handles = self._watch(side)
            loss = fn(side.train())
            side.zero_grad()
            for handle in handles:
                handle.remove()
            sides.append((loss, seen))
        (eager_loss, eager), (loss, ours) = sides
        diffs = [ModuleDiff(name, note=IGNORED) for name in self._left_out]
        for name in sorted(eager):
            if self._is_left_out(name):
                continue
            diff = ModuleDiff(name)
            if name not in ours:
                diff.note = "SKIP_inside_compiled"
            else:
                for part in ("fwd_input", "fwd_output", "grad_input", "grad_output"):
                    if part != "fwd_input" or self.capture_input:
                        setattr(diff, part, _paired(eager[name][part], ours[name][part]))
            diffs.append(diff)
        return float(eager_loss.detach()), loss, sorted(diffs, key=lambda d: d.name)

    def _watch(self, model: nn.Module) -> tuple[dict, list]:
        """{module: its tensors} of a run; what is inside of a compiled module is not looked at, so that it stays whole."""
        seen: dict[str, dict] = {}
        handles = []
        parts = {id(part): name for name, part in self._parts.items()}
        inside = {id(below) for part in self._parts.values() for below in part.original.modules()}
        scope = list(self._parts)
        for raw, module in model.named_modules():
            name = parts.get(id(module), raw)
            scoped = not scope or any(name == p or name.startswith(p + ".") or p == "model" for p in scope)
            if not name or not scoped or (id(module) in inside and id(module) not in parts):
                continue
            handles.append(module.register_forward_hook(callback(_hook(seen, name))))
        return seen, handles


def _keep(place: dict, number: int, gradient: torch.Tensor) -> None:
    place[number] = gradient.detach().clone()


def _hook(seen: dict, name: str) -> Callable:
    @_compat.disable_compiler
    def hook(module: nn.Module, inputs: tuple, output: Any) -> None:
        entry = {"grad_input": {}, "grad_output": {}}
        for part, value in (("input", inputs), ("output", output)):
            tensors = tensors_of(value)
            entry[f"fwd_{part}"] = dict(enumerate(t.detach().clone() for t in tensors))
            for number, tensor in enumerate(tensors):
                if tensor.requires_grad:
                    tensor.register_hook(callback(functools.partial(_keep, entry[f"grad_{part}"], number)))
        seen[name] = entry

    return hook


def _paired(eager: dict, compiled: dict) -> Optional[list]:
    numbers = [number for number in eager if number in compiled]
    return diffs_of([eager[n] for n in numbers], [compiled[n] for n in numbers])


def _detached(*values: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda v: v.detach() if isinstance(v, torch.Tensor) else v, values)

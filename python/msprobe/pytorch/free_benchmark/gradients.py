"""Stage backward: the gradients of a call, of its inputs as they were and changed."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..._capture.free_benchmark.settings import NO_CHANGE, Settings
from ..hook_points import callback
from .perturb import drawing_from, mapped, perturbed
from .ratio import Difference, compare, threshold_of


class GradientCheck:
    """Waits for the gradient of a call's result, and compares those of its inputs."""

    def __init__(self, call: Any, settings: Settings, differs: Callable[[str, Difference], None]) -> None:
        """Keeps the inputs; `differs` takes what is not consistent."""
        self._call, self._settings, self._differs = call, settings, differs
        self._inputs: list = []
        self._leaves: list = []  # which of the inputs require a gradient
        self._original: tuple = ()
        self._changed: tuple = ()
        self._compares = True

    def watch(self, args: tuple, result: Any) -> None:
        """Hooks the result and the inputs, which get the gradients they would have got."""
        out = next((t for t in _flat(result) if t.requires_grad), None)
        if out is None:
            return
        self._inputs = [
            value.detach().clone() if isinstance(value, torch.Tensor) else value for value in self._call.args
        ]
        self._leaves = [isinstance(value, torch.Tensor) and value.requires_grad for value in args]
        out.register_hook(callback(self._arrived))
        wanted = [value for value, leaf in zip(args, self._leaves) if leaf]
        for number, tensor in enumerate(wanted):
            tensor.register_hook(callback(functools.partial(self._compare, number=number)))

    def _arrived(self, gradient: torch.Tensor) -> None:
        with torch._C.DisableTorchFunction():
            given = gradient.detach().clone()
            leaves = [value for value, leaf in zip(self._inputs, self._leaves) if leaf]
            try:
                self._original = self._gradients(leaves, given, self._inputs)
                changed = perturbed(self._settings.pert_mode, (leaves, given, self._inputs), {})
                if changed is not None:
                    self._changed = self._gradients(*changed[0])
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, StopIteration):
                self._compares = False  # a function that does not take the changed inputs

    def _gradients(self, leaves: list, given: torch.Tensor, inputs: list) -> tuple:
        """The gradients of the inputs that require one."""
        made = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        rest = iter(made)
        placed = [next(rest) if leaf else value for value, leaf in zip(inputs, self._leaves)]
        kwargs = mapped(self._call.kwargs, lambda tensor: tensor.detach().clone())
        if "inplace" in kwargs:
            kwargs["inplace"] = False
        with torch.enable_grad(), drawing_from(self._call.generators):
            # A function that overwrites an input may not overwrite a leaf.
            placed = [value.clone() if isinstance(value, torch.Tensor) else value for value in placed]
            out = next(t for t in _flat(self._call.function(*placed, **kwargs)) if t.requires_grad)
            found = torch.autograd.grad(out, made, given.to(out.dtype), allow_unused=True)
        return tuple(torch.zeros_like(t) if g is None else g for g, t in zip(found, made))

    def _compare(self, gradient: torch.Tensor, number: int) -> None:
        """Compares what a tensor got, and where that is not consistent what the call alone gives."""
        if not self._compares or number >= len(self._changed):
            return
        limits = (lambda dtype: 1.0) if self._settings.pert_mode == NO_CHANGE else threshold_of
        with torch._C.DisableTorchFunction():
            found, _ = compare(gradient.detach(), self._changed[number], limits)
            if not found:
                return
            self._compares = False
            for difference in (*found, *compare(self._original, self._changed, limits)[0]):
                self._differs(self._call.name, difference)


def _flat(value: Any) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value for tensor in _flat(part)] if isinstance(value, (list, tuple)) else []

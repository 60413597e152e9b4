"""The loss of a training loop whose model returns none: the number that backward() is called on."""

import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Optional

import torch

from ..hook_points import HookSet
from .loss_factor import LossFactor

_LOOKED_AT = 8  # parameters


class BackwardLoss:
    """Watches torch.autograd.backward and the loss scaler while it is installed."""

    def __init__(self, take: Callable, guard: Callable) -> None:
        """Watches nothing yet.

        Args:
            take: Called with the value of a loss, and the factor before its backward pass or None, when that has reached
                the models.
            guard: Runs what must not stop the training.
        """
        self._take, self._guard = take, guard
        self._hooks = HookSet()
        self.factor = LossFactor()
        self._parameters: list = []  # weak references
        self._scaled: tuple = (None, None)  # (a weak reference to a loss times its scale, the loss)
        self._inside = False
        self._seen: Optional[tuple] = None  # (the loss, marks of parameters before its backward pass)
        self.armed = False

    def add(self, model: torch.nn.Module) -> None:
        """Takes the losses whose backward pass reaches this model, too."""
        trained = [p for p in model.parameters() if p.requires_grad]
        apart = max(len(trained) // _LOOKED_AT, 1)
        self._parameters += [weakref.ref(p) for p in itertools.islice(reversed(trained), 0, None, apart)]

    def install(self) -> None:
        """Begins."""
        self._hooks.around(torch.autograd, "backward", self._around_backward)
        sharded = sys.modules.get("torch.distributed.fsdp.sharded_grad_scaler")  # has a method of its own
        for scaler in (getattr(torch.amp, "GradScaler", None), getattr(sharded, "ShardedGradScaler", None)):
            if scaler is not None:
                self._hooks.around(scaler, "scale", self._around_scale)

    def remove(self) -> None:
        """Ends; the functions are those of PyTorch again."""
        self._hooks.remove()
        self._scaled = (None, None)
        self.factor.forget()

    def _around_scale(self, original: Callable, args: tuple, kwargs: dict) -> Any:
        if not self.armed:
            return original(*args, **kwargs)
        result = original(*args, **kwargs)
        self._guard(lambda: self._note_scaled(args[1] if len(args) > 1 else kwargs.get("outputs"), result))
        return result

    def _note_scaled(self, given: Any, result: Any) -> None:
        value = _number(given)
        if value is not None and isinstance(result, torch.Tensor):
            self._scaled = (weakref.ref(result), value)

    def _around_backward(self, original: Callable, args: tuple, kwargs: dict) -> Any:
        # Activation checkpointing calls it again inside of a backward pass.
        if self._inside or not self.armed:
            return original(*args, **kwargs)
        self._inside = True
        try:
            self._guard(lambda: self._before(args[0] if args else kwargs.get("tensors")))
            result = original(*args, **kwargs)
        finally:
            self._inside = False
        self._guard(self._after)
        return result

    def _before(self, roots: Any) -> None:
        if isinstance(roots, (list, tuple)) and len(roots) == 1:
            roots = roots[0]
        scaled, value = self._scaled
        self._scaled = (None, None)
        is_scaled = scaled is not None and roots is not None and scaled() is roots
        if not is_scaled:
            value = _number(roots)
        self._seen = None if value is None else (value, self._marks())
        if value is not None:
            self.factor.before(roots, is_scaled)

    def _after(self) -> None:
        if self._seen is None:
            return
        (value, before), self._seen = self._seen, None
        now = self._marks()
        reached = any(not _is_same(a, b) for a, b in zip(before, now))
        if reached or any(is_sharded for *_, is_sharded in now):
            self._take(value, self.factor.after())

    def _marks(self) -> list:
        """What a backward pass that reaches a parameter changes: its gradient, or itself where its step is part of it."""
        marks = []
        for reference in self._parameters:
            parameter = reference()
            if parameter is None:
                continue
            grads = [parameter.grad, getattr(parameter, "main_grad", None)]
            versions = [getattr(g, "_version", None) for g in (parameter, *grads)]
            # Of a shard the gradient may go elsewhere.
            is_sharded = hasattr(parameter, "ds_id") or hasattr(parameter, "device_mesh") or parameter.numel() == 0
            marks.append((grads, versions, is_sharded))
        return marks


def _is_same(a: tuple, b: tuple) -> bool:
    return a[1] == b[1] and all(x is y for x, y in zip(a[0], b[0]))


def _number(value: Any) -> Optional[torch.Tensor]:
    """A copy of a floating number; None of anything else."""
    if isinstance(value, torch.Tensor) and value.numel() == 1 and value.is_floating_point():
        return value.detach().clone()  # what divides it in place comes later
    return None

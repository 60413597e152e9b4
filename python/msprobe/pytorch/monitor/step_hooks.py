"""Right before and right after the steps of one optimizer."""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from ..._capture.guard import shielded
from .. import closures
from ..hook_points import HookSet


class StepHooks:
    """Calls two functions around each step of an optimizer, whatever library it is from."""

    def __init__(self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Begins.

        Args:
            optimizer: An instance.
            before: Called before each step.
            after: Called after it.
        """
        self._hooks = HookSet()
        own = hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "_optimizer_step_post_hooks")
        if isinstance(optimizer, torch.optim.Optimizer) and own:
            self._hooks.around_step(optimizer, lambda *_: before(), lambda *_: after())
            return
        first, last = closures.before_use(shielded(lambda *_: before())), shielded(after)
        original = optimizer.step

        @functools.wraps(original)
        def step(this: Any, *args: Any, **kwargs: Any) -> Any:
            (_, *args), kwargs = first(optimizer, (optimizer, *args), kwargs) or ((optimizer, *args), kwargs)
            result = original(*args, **kwargs)
            last()
            return result

        # A method, because schedulers of the learning rate wrap what they find here and bind it again.
        self._hooks.instead(optimizer, "step", types.MethodType(step, optimizer))

    def remove(self) -> None:
        """Ends."""
        self._hooks.remove()

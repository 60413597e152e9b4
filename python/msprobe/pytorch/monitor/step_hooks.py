"""Right before and right after the steps of one optimizer."""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch


class StepHooks:
    """Calls two functions around each step of an optimizer, whatever library it is from."""

    def __init__(self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Begins.

        Args:
            optimizer: An instance.
            before: Called before each step.
            after: Called after it.
        """
        self._undo: list = []
        own = hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "_optimizer_step_post_hooks")
        if isinstance(optimizer, torch.optim.Optimizer) and own:
            self._undo.append(optimizer.register_step_pre_hook(lambda *_: before()).remove)
            self._undo.append(optimizer.register_step_post_hook(lambda *_: after()).remove)
            return
        original = optimizer.step

        @functools.wraps(original)
        def step(this: Any, *args: Any, **kwargs: Any) -> Any:
            before()
            result = original(*args, **kwargs)
            after()
            return result

        # A method, because schedulers of the learning rate wrap what they find here and bind it again.
        optimizer.step = types.MethodType(step, optimizer)
        self._undo.append(lambda: optimizer.__dict__.pop("step", None))

    def remove(self) -> None:
        """Ends."""
        for undo in self._undo:
            undo()
        self._undo.clear()

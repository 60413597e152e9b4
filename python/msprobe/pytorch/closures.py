"""Steps of optimizers that are given a closure, as Lightning's and those of LBFGS.

Such a step computes its gradients itself, in the closure: what comes right before the optimizer uses them comes behind it.
"""

import functools
from collections.abc import Callable
from typing import Any, Optional

_running: list = []  # closures that compute gradients now, the innermost last


class _Closure:
    """The closure of one step, behind whose first result something is called."""

    def __init__(self, optimizer: Any, closure: Callable, call: Callable[[], None]) -> None:
        self.optimizer = optimizer
        self.calls = [call]
        self._closure = closure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _running.append(self)
        try:
            result = self._closure(*args, **kwargs)
        finally:
            _running.remove(self)
        calls, self.calls = self.calls, []
        for call in calls:
            call()
        return result


def before_use(call: Callable) -> Callable:
    """Makes a hook of a step that calls a function once the gradients are there.

    Args:
        call: Called with (optimizer, args, kwargs) of the step; it does not raise.

    Returns:
        A hook as PyTorch calls it before a step: it returns other (args, kwargs), or None.
    """

    def hook(optimizer: Any, args: tuple, kwargs: dict) -> Optional[tuple]:
        def use() -> None:
            call(optimizer, args, kwargs)

        if len(args) > 1 and callable(args[1]):
            return (args[0], _Closure(optimizer, args[1], use), *args[2:]), kwargs
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": _Closure(optimizer, kwargs["closure"], use)}
        use()
        return None

    return hook


def before_running_use(optimizer: Optional[Any], call: Callable) -> None:
    """Calls a function, too, where the closure of a step runs already.

    Args:
        optimizer: Whose step; None: any.
        call: As of before_use(), with no arguments of the step.
    """
    for closure in reversed(_running):
        if optimizer is None or _hooks_of(closure.optimizer) is _hooks_of(optimizer):
            closure.calls.append(functools.partial(call, closure.optimizer, (), {}))
            return


def _hooks_of(optimizer: Any) -> Any:
    """A wrapper, such as Lightning's, has the hooks of what it wraps."""
    return getattr(optimizer, "_optimizer_step_pre_hooks", optimizer)

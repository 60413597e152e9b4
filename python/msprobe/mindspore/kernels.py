"""Level L2 in PyNative mode with task overflow_check: every operator that runs, forward and backward, seen one by one.

Functions are recorded as they are called, and one function may run many operators; the backward pass runs operators that no
function of a script stands for. MindSpore 2.9 shows each of them to a dispatch mode. Entries are `Kernel.{operator}.N.forward`,
and `GradKernel.{operator}.N.forward` for those of the backward pass. Of a dispatch mode nothing is left after stop().
"""

import functools
import sys
from typing import Any, Optional

import mindspore

from .. import _core
from .._capture.config import Config

_Mode: Any = getattr(mindspore, "MsDispatchMode", None)
_entered: Optional[Any] = None


def are_seen(config: Config) -> bool:
    """Tells whether this configuration is about operators as they run, and the release shows them."""
    if config.level != "L2" or config.task != "overflow_check" or _Mode is None:
        return False
    return mindspore.get_context("mode") == mindspore.PYNATIVE_MODE


@functools.cache
def set_up() -> None:
    """Prepares the hook. It sees nothing before enter()."""
    details = {"resolve": _name_of, "skip_self": True}
    _core.add_api(sys.modules[__name__], "run", "Kernel", "operator", "FOCUS", False, details)


def enter() -> None:
    """Shows operators to the recorder from here on."""
    global _entered
    if _entered is None:
        _entered = _mode()
        _entered.__enter__()


def leave() -> None:
    """Shows none any more."""
    global _entered
    if _entered is not None:
        mode, _entered = _entered, None
        mode.__exit__(None, None, None)


def run(call: Any, *operands: Any) -> Any:
    """Runs an operator; the operands are there to be recorded."""
    return call()


def _name_of(call: Any) -> str:
    return f"{'GradKernel' if _core.in_backward() else 'Kernel'}.{call.func.name}"


def _operands(args: tuple) -> tuple:
    """Returns what the operator computes with; some come as (Primitive, name, operands)."""
    primitive = len(args) == 3 and isinstance(args[0], mindspore.ops.Primitive) and isinstance(args[2], (tuple, list))
    return tuple(args[2]) if primitive else args


@functools.cache
def _mode() -> Any:
    class Kernels(_Mode):
        """Hands each operator to run(), which is hooked."""

        def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
            return run(functools.partial(func, *args, **(kwargs or {})), *_operands(args))

    return Kernels()

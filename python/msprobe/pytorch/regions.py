"""Regions of a training that are left alone because their Python does not run: compiled graphs, TorchScript.

They compute what they compute without the tool, and the summary of a step names each with the number of its calls.
"""

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, Optional

import torch

from .. import _core
from .._capture.guard import shielded
from . import recorder

_COMPILED = "a compiled region was left alone: {}"
_SCRIPT = "TorchScript was left alone: {}"


@functools.cache
def watch() -> None:
    """Hooks the entry points of such regions, which are watched while something is recorded or on_hide() wants it."""
    recorder.init()
    dynamo = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if callable(getattr(dynamo, "set_eval_frame", None)):
        _core.set_region_callbacks(
            dynamo.set_eval_frame, shielded(_enter), shielded(_is_compilers_own, False), shielded(_hide)
        )
        _core.add_api(dynamo, "set_eval_frame", "region", "compiled", "FOCUS", True, {"role": "set_eval_frame"})
    for name in ("ScriptMethod", "ScriptFunction"):
        if hasattr(torch._C, name):
            details = {"role": "leave", "resolve": _script_name}
            _core.add_api(getattr(torch._C, name), "__call__", "region", name, "FOCUS", True, details)


_set_aside: set = set()


def watch_trials() -> None:
    """Hooks what runs a model on memory that nobody has written, to learn the shapes of its results.

    Stages of torch.distributed.pipelining do so in their first step. Called at each start(): they are imported late.
    """
    stages = sys.modules.get("torch.distributed.pipelining.stage")
    for owner in list(vars(stages).values()) if stages is not None else ():
        for name, function in list(vars(owner).items()) if isinstance(owner, type) else ():
            if name.endswith("_inference") and isinstance(function, types.FunctionType) and function not in _set_aside:
                _set_aside.add(function)
                _core.add_api(owner, name, "region", name, "FOCUS", True, {"role": "aside"})


def _script_name(function: Any) -> Optional[str]:
    owner = getattr(function, "owner", None)
    kind = getattr(owner() if callable(owner) else owner, "_type", None)
    name = getattr(kind() if callable(kind) else kind, "name", None)
    where = f"{(name() if callable(name) else name)}." if name else ""
    return _SCRIPT.format(where + str(getattr(function, "name", "function")))


# ---- torch.compile ------------------------------------------------------------------------------------------------------

_MOST_NAMED = 8

_muted: set = set()
_began: dict = {}  # names of regions
_hiders: list = []  # called with how much a compiler must not find
_followers: list = []  # called with each region that begins: its name, and whether it is a module


def on_hide(hide: Callable[[int], None]) -> None:
    """From now on has hooks hidden and shown: 0 none are hidden, 1 those that guards look at, 2 all."""
    if hide not in _hiders:
        _hiders.append(hide)
        _core.watch_regions(True)


def follow(begins: Callable[[str, bool], None]) -> Callable[[], None]:
    """Has a function called when a compiled region begins, with its name and whether it is a module; returns what undoes that."""
    watch()
    _core.watch_regions(True)
    guarded = shielded(begins)
    _followers.append(guarded)
    return lambda: _followers.remove(guarded)


def _hide(level: int) -> None:
    for hide in _hiders:
        hide(level)


def _enter(callback: Any) -> Optional[str]:
    """Returns the name of the compiled region that begins; None if one resumes after an interruption."""
    frame = sys._getframe(2)  # behind the guard
    _hide_from_compiler()
    variables = frame.f_locals
    if variables.get("prior") is callback:
        return None
    name, is_module = _what_is(variables.get("fn"))
    if len(_began) < _MOST_NAMED:
        _began[name] = True
    for begins in list(_followers):
        begins(name, is_module)
    return _COMPILED.format(name)


def left_alone() -> str:
    """For a message that something was not found: the compiled code in which it may be; empty if there was none."""
    return f"; compiled code is left alone: {', '.join(_began)}" if _began else ""


def _what_is(function: Any) -> tuple:
    """Its name, and whether it is a module: a forward, and no step of a training."""
    for _ in range(32):
        owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
        if isinstance(owner, torch.nn.Module):
            return type(owner).__qualname__, True
        if isinstance(owner, torch.optim.Optimizer):
            return f"{type(owner).__qualname__}.{function.__name__}", False
        inner = getattr(function, "_torchdynamo_orig_callable", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    owner = getattr(function, "__self__", None)
    if owner is not None:
        return type(owner).__qualname__, False
    return getattr(function, "__qualname__", None) or "without a name", False


def _is_compilers_own() -> bool:
    """Whether what runs now, in the middle of a region, is the code that the compiler has made.

    Otherwise it is a function that the compiler was told to leave alone, and is recorded as usual.
    """
    frame = sys._getframe(2)  # behind the guard
    if frame.f_code.co_name != "_fn":
        return False
    variables = frame.f_locals
    reason = getattr(variables.get("self"), "msg", None)
    if isinstance(reason, str) and "compiled graph" in reason:
        return True
    function = variables.get("fn")
    module = getattr(function, "__module__", None) or type(function).__module__
    return isinstance(module, str) and module.startswith(
        ("torch._functorch", "torch._inductor", "torch.fx", "<eval_with")
    )


def _hide_from_compiler() -> None:
    """While a function is traced the compiler finds none of our hooks; torch._dynamo.reset() forgets these."""
    callbacks = sys.modules.get("torch._dynamo.callback")
    handler = getattr(callbacks, "callback_handler", None)
    if handler is not None and _begin not in handler.start_callbacks:
        handler.register_start_callback(_begin)
        handler.register_end_callback(_end)
    inductor = sys.modules.get("torch._inductor.output_code")
    compiled = getattr(inductor, "CompiledFxGraph", None)
    if compiled is not None and compiled not in _muted:  # its kernels call functions that are recorded elsewhere
        _muted.add(compiled)
        _core.add_api(compiled, "__call__", "region", "inductor", "FOCUS", True, {"role": "mute"})


@shielded
def _begin(*args: Any) -> None:
    _core.hide_from_compiler(True)


@shielded
def _end(*args: Any) -> None:
    _core.hide_from_compiler(False)

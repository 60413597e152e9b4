"""Tells the recorder which functions, modules and phases there are."""

import functools
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch

from .. import _core
from .._capture.config import Config
from .._capture.log import logger
from .._capture.words import say
from .._compat import distributed_module
from . import regions, unwritten
from .apis import Api, extension_apis, hooked_apis, missing_extra, risk_of
from .custom_ops import ForeignOps, OperatorFinder, is_packet
from .hook_points import HookSet

_RESIZE = frozenset({"Tensor.resize_", "Tensor.resize_as_"})
# With p=0 these do nothing, and no backward is recorded.
_DROPOUTS = frozenset(
    f"{prefix}.{name}"
    for prefix, names in {
        "Functional": "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout",
        "Torch": "dropout dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_",
    }.items()
    for name in names.split()
)


def set_up(config: Config) -> None:
    """Prepares the hooks of a configuration; none is in place before start()."""
    _watch()
    if config.level in ("L1", "mix"):
        _add_apis(config)


@functools.cache
def _watch() -> None:
    regions.watch()
    for owner, name in unwritten.allocating_functions():
        _core.add_api(owner, name, "memory", name, "LOW", True, {"role": "allocate"})
    distributed = distributed_module()
    if distributed.is_available() and hasattr(distributed, "Work"):
        _watch_works(distributed)
    engine = type(torch.autograd.Variable._execution_engine)
    _core.add_api(engine, "run_backward", "autograd", "run_backward", "LOW", True, {"role": "begin_pass"})
    nodes = getattr(torch.autograd.function, "_HookMixin", None)
    if nodes is not None:
        _core.add_api(nodes, "_register_hook", "autograd", "_register_hook", "LOW", True, {"role": "node_hook"})
    for name in ("register_forward_pre_hook", "register_forward_hook"):
        _core.add_api(torch.nn.Module, name, "Module", name, "LOW", True, {"role": "register_hook"})


# How somebody finds out that a future is fulfilled.
_FUTURE = {
    "wait": "future_wait",
    "value": "future_value",
    "done": "future_done",
    "then": "then",
    "add_done_callback": "then",
}


def _watch_works(distributed: Any) -> None:
    """What arrives asynchronously is recorded when somebody has waited for it."""
    _core.watch_works(distributed.Work)
    future = torch._C.Future
    found = [(future, method, role) for method, role in _FUTURE.items()]
    found.append((torch._C, "_collect_all", "collect"))
    for owner, name, role in found:
        if hasattr(owner, name):
            _core.add_api(owner, name, "Work", name, "CORE", True, {"role": role})


# Of Tensor, beside those that are recorded.
_WRITES = "apply_ conj_physical_ copy_ index_reduce_ random_ scatter_reduce_ set_ subtract_ uniform_ zero_".split()


@functools.cache
def _watch_writes() -> None:
    """What an asynchronous communication brought is read before it is written over."""
    known = {key for key in _hooked if key[0] in (id(torch), id(torch.Tensor))}
    found = [(torch.Tensor, name) for name in _WRITES]
    found += [(torch, name) for name in dir(torch) if name.startswith(("_foreach_", "_fused_")) and name.endswith("_")]
    for owner, name in found:
        if (id(owner), name) not in known and hasattr(owner, name):
            _core.add_api(owner, name, "Write", name, "CORE", True, {"role": "write"})


_namespaces = OperatorFinder()
_custom: list = []  # (owner, attribute) of register_custom_api
_hooked: dict = {}  # (id of the owner, attribute) -> Api, of the built-in rules and custom_apis
_hooked_ops: dict = {}  # namespace -> owners whose attribute _op is hooked
_foreign = ForeignOps()
_recorded_ops: set = set()  # ids of owners whose attribute _op is hooked, and
_counted_ops: dict = {}  # id -> owner of those that nobody asked to record
_lists: Any = None  # those that _hooked was made of


def _add_apis(config: Config) -> None:
    """Hooks the functions that the configuration selects, and unhooks those only an earlier one did."""
    global _lists
    lists = (config.custom_apis, config.exclude_apis)
    if lists != _lists:
        _lists = lists
        _core.remove_apis()  # so that each attribute is the function itself; start() puts the hooks in place again
        _exchange_apis(config)
        _add_extensions()
        _watch_writes()
    for namespace in set(_hooked_ops) - set(config.custom_op_namespaces):
        for owner in _hooked_ops.pop(namespace):
            _core.remove_api(owner, "_op")
            _recorded_ops.discard(id(owner))
        _namespaces.forget(namespace)
        _foreign.forget(namespace)
    if set(config.custom_op_namespaces) - set(_hooked_ops):
        _add_ops(_namespaces.all_ops(config.custom_op_namespaces))
        for namespace in config.custom_op_namespaces:
            _hooked_ops.setdefault(namespace, [])


def _exchange_apis(config: Config) -> None:
    for name in missing_extra(torch, config.custom_apis):
        logger.warning("custom_apis: there is no function %s; it is left out.", name)
    wanted = {(id(api.owner), api.attr): api for api in hooked_apis(torch, config.custom_apis, config.exclude_apis)}
    for key in [key for key, api in _hooked.items() if wanted.get(key) != api]:
        _core.remove_api(_hooked[key].owner, key[1])
        del _hooked[key]
    for key, api in wanted.items():
        if key in _hooked:
            continue
        _hooked[key] = api
        why = _add(api)
        if why:
            logger.warning("%s.%s cannot be recorded: %s", api.prefix, api.name, why)


def add_new_ops(config: Config) -> None:
    """Hooks operators registered and extensions imported since the last call."""
    regions.watch_trials()
    if config.level in ("L1", "mix"):
        _add_extensions()
        _add_ops(_namespaces.used_ops(config.custom_op_namespaces))
        _count_ops()


def _count_ops() -> None:
    for namespace, name, packet in _foreign.new():
        for owner in _with_overloads(packet):
            if id(owner) not in _recorded_ops:
                _counted_ops[id(owner)] = owner
                _core.add_api(owner, "_op", namespace, name, "FOCUS", False, {"role": "count"})


def _with_overloads(packet: Any) -> list:
    return [packet, *(getattr(packet, overload) for overload in packet.overloads())]


def _hook(owner: Any, attr: str, *rest: Any) -> str:
    if attr == "_op":
        if _counted_ops.pop(id(owner), None) is not None:
            _core.remove_api(owner, attr)
        _recorded_ops.add(id(owner))
    return _core.add_api(owner, attr, *rest)


def _add_ops(found: Iterable[tuple[str, str, Any]]) -> None:
    for namespace, name, packet in found:
        # The packet stays what it is; the function it calls is its attribute. Objects of torch.library.custom_op call one
        # of its overloads. They share one counter.
        details = {"resolve": functools.partial(_constant, f"{namespace}.{name}")}
        for owner in _with_overloads(packet):
            why = _hook(owner, "_op", namespace, name, risk_of(namespace, name), False, details)
            _hooked_ops.setdefault(namespace, []).append(owner)
            if why:
                logger.warning("%s.%s cannot be recorded: %s", namespace, name, why)


_extensions: dict = {"modules": 0, "known": set()}


def _add_extensions() -> None:
    if _extensions["modules"] == len(sys.modules):
        return
    _extensions["modules"] = len(sys.modules)
    known = _extensions["known"]
    for prefix, name, owner, attr in extension_apis(torch):
        function = getattr(owner, attr)
        if id(function) not in known:
            known.add(id(function))
            _add(Api(prefix, name, owner, attr, risk_of(prefix, name)))
    for path, name in _TRITON:
        kernel = getattr(sys.modules.get(path), name, None)
        if isinstance(getattr(kernel, "run", None), types.FunctionType) and kernel not in known:
            known.add(kernel)
            details = {"resolve": _kernel_name, "skip_self": True, "outputs_are_arguments": True}
            _core.add_api(kernel, "run", "Triton", name, "FOCUS", True, details)


# Kernels work on their arguments. What the first two run is of the third kind, and makes no entry of its own.
_TRITON = (
    ("triton.runtime.autotuner", "Autotuner"),
    ("triton.runtime.autotuner", "Heuristics"),
    ("triton.runtime.jit", "JITFunction"),
)


def _kernel_name(kernel: Any) -> str:
    for _ in range(8):
        name = getattr(kernel, "__name__", None)
        if isinstance(name, str):
            break
        kernel = getattr(kernel, "fn", None)
    return f"Triton.{name if isinstance(name, str) else type(kernel).__name__}"


def _constant(name: str, first_argument: Any) -> str:
    return name


def _add(api: Api) -> str:
    full = f"{api.prefix}.{api.name}"
    details = {"dropout": True} if full in _DROPOUTS else {"resizes": True} if full in _RESIZE else {}
    return _hook(api.owner, api.attr, api.prefix, api.name, api.risk, api.in_place, details)


def add_custom(module: Any, api: str, prefix: Any = None) -> str:
    """Hooks one function. Returns why that is impossible, or an empty string."""
    function = getattr(module, api, None)
    if not callable(function):
        return say("%(owner)s has no function of this name", owner=repr(module))
    prefix = prefix or getattr(module, "__name__", type(module).__name__)
    owner, attr = (function, "_op") if is_packet(function) else (module, api)
    why = _hook(owner, attr, prefix, api, risk_of(prefix, api), owner is module)
    if not why:
        _custom.append((owner, attr))
    return why


def remove_custom(module: Any, api: str) -> bool:
    """Undoes add_custom(). Returns False if there is nothing to undo."""
    function = getattr(module, api, None)
    owner, attr = (function, "_op") if is_packet(function) else (module, api)
    known = [i for i, (o, a) in enumerate(_custom) if o is owner and a == attr]
    if known:
        del _custom[known[-1]]
        _core.remove_api(owner, attr)
        _recorded_ops.discard(id(owner))
    return bool(known)


def _walk(model: Any, number: Optional[int] = None) -> Iterable[tuple[str, torch.nn.Module]]:
    """Yields every module below the roots with its path; for several models the path begins with the number of the model."""
    several = isinstance(model, (list, tuple))
    for index, root in enumerate(model if several else [model], number or 0):
        prefix = f"{index}." if several or number is not None else ""
        for name, module in root.named_modules():
            # A compiled module stands for the one it was made of, so names are those of the run without the compiler.
            parts = [part for part in name.split(".") if part != "_orig_mod"]
            if module is not root and parts and not name.endswith("_orig_mod"):
                yield prefix + ".".join(parts), module


def _class_of(module: torch.nn.Module) -> str:
    return type(getattr(module, "_orig_mod", module)).__name__


def named_modules(model: Any) -> Iterable[tuple[str, torch.nn.Module]]:
    """Yields every module below the roots with the prefix of its entries."""
    for path, module in _walk(model):
        yield f"Module.{path}.{_class_of(module)}", module


_known_modules: weakref.WeakSet = weakref.WeakSet()
_known_roots: weakref.WeakSet = weakref.WeakSet()


def _add_roots(model: Any, number: Optional[int]) -> None:
    """Of a root only the gradients of its own parameters are recorded: its modules use them."""
    several = isinstance(model, (list, tuple))
    for index, root in enumerate(model if several else [model], number or 0):
        name = _class_of(root)
        if root in _known_roots or root in _known_modules or name == "FullyShardedDataParallel":
            continue
        _known_roots.add(root)
        prefix = f"{index}." if several or number is not None else ""
        _core.add_parameter_owner(root, f"Module.{prefix}{name}")


def add_model(model: Any, number: Optional[int] = None) -> None:
    """Hooks the modules of a model; `number` is its index among several."""
    _add_roots(model, number)
    for path, module in _walk(model, number):
        if module in _known_modules:  # of another model, too: it keeps its first name
            continue
        _known_modules.add(module)
        name = _class_of(module)
        if name == "FullyShardedDataParallel":
            continue
        if isinstance(module, torch.jit.ScriptModule):
            logger.warning("Module.%s is a %s, which runs no hooks; it is left out.", path, name)
            continue
        _core.add_module(module, f"Module.{path}.{name}")


def mark_phases() -> None:
    """Lists what runs inside clip_grad functions under them in construct.json."""
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
        if callable(getattr(torch.nn.utils, name, None)):
            _core.add_api(torch.nn.utils, name, "phase", name, "FOCUS", True, {"phase": "clip_grad"})


_optimizer_hooks = HookSet()


def mark_optimizers() -> None:
    """Lists what runs inside optimizers under them in construct.json, while recording."""
    optimizer = importlib.import_module("torch.optim.optimizer")
    if _optimizer_hooks or not hasattr(optimizer, "register_optimizer_step_pre_hook"):
        return
    begin, end = (lambda *args: _core.set_phase("optimizer")), (lambda *args: _core.set_phase(""))
    _optimizer_hooks.around_step(None, begin, end, whole=True)


def stop_recording() -> str:
    """Stops recording. Returns an error message, or an empty string."""
    if not _is_inside(importlib.import_module("torch.optim.optimizer").__file__):
        _optimizer_hooks.remove()
    return _core.stop()


def _is_inside(file: str) -> bool:
    """Tells whether the caller is inside a hook of an optimizer, while the list of these hooks is being iterated."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


def count_tokens(model: Any, token_range: Any) -> None:
    """Records the forward passes of the root model numbered first to last, counted from 0, once (inference)."""
    root = model[0] if isinstance(model, (list, tuple)) else model
    _core.pause()
    counter = _TokenCounter(*token_range)
    counter.hooks.before(root, counter.count, prepend=True)


def before_forward(model: torch.nn.Module, call: Callable[[], None]) -> Callable[[], None]:
    """Has `call` called before each forward of a model, ahead of what records it. Returns what ends that."""
    hooks = HookSet()
    hooks.before(model, lambda module, args: call(), prepend=True)
    return hooks.remove


class _TokenCounter:
    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._token = 0
        self.hooks = HookSet()

    def count(self, module: Any, args: Any) -> None:
        if self._token == self._first:
            _core.resume()
        elif self._token == self._last + 1:
            _core.pause()
            self.hooks.remove()
        self._token += 1


_single_modules: list = []


_single_dump = False


def begin_module_dump(module: torch.nn.Module, name: str) -> None:
    """Hooks this module only."""
    global _single_dump
    if module in _known_modules:
        logger.warning("module_dump: this %s is part of the model of start() and has its names.", type(module).__name__)
        return
    if not any(known is module for known in _single_modules):
        _single_modules.append(module)
        _core.add_module(module, f"Module.{name}.{type(module).__name__}")
    _core.remove_apis()
    _core.install_modules()
    _single_dump = True


def end_module_dump() -> None:
    """Restores the hooks of functions."""
    global _single_dump
    if not _single_dump:
        return
    _single_dump = False
    _core.remove_modules()
    if _core.is_running():
        _core.install_apis()

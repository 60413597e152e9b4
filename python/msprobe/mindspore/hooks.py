"""Tells the recorder which functions, Primitives and Cells there are."""

import os
import weakref
from collections.abc import Iterator
from typing import Any, Optional

import mindspore
from mindspore import nn

from .. import _core
from .._capture.config import Config
from .._capture.log import logger
from . import cell_hooks, describe, kernel_dump, kernels
from .apis import FOCUS, Api, hooked_apis, missing_extra
from .writes import Site, write_sites, writing_primitives

_hooked: dict = {}  # (id of the owner, attribute) -> Api
_custom: list = []  # (owner, attribute) of register_custom_api
_known_cells: weakref.WeakSet = weakref.WeakSet()
_known_classes: set = set()  # of Primitives whose __call__ is hooked
_lists: Any = None  # those that _hooked was made of
_compiled: dict = {}  # role of the hook of compiled functions
_writes: dict = {}  # (id of the owner, attribute) -> Site
_write_hooks: set = set()  # keys of _writes that are hooked as such, not as functions to record


def init() -> None:
    """Tells the recorder which framework it records."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _core.init("mindspore", mindspore, describe.describe, describe.describe_tensor, package + os.sep)


def set_up(config: Config) -> None:
    """Prepares the hooks of a configuration; none is in place before start()."""
    if kernels.are_seen(config):
        _watch_passes()
        _forget_apis()
        kernels.set_up()
        return
    if config.level == "L2":
        kernel_dump.prepare(config)
        return
    _watch_compiler(config)
    _watch_passes()
    if config.level in ("L1", "mix"):
        _exchange_apis(config)
    _exchange_writes(config)


def set_up_compiler(config: Config) -> None:
    """Prepares that graphs are compiled as without us, where something else than a recording exchanges functions."""
    _watch_compiler(config)
    _forget_apis()


def _exchange_apis(config: Config) -> None:
    global _lists
    lists = (config.custom_apis, config.exclude_apis)
    if lists == _lists:
        return
    _lists = lists
    _core.remove_apis()  # so that each attribute is the function itself; start() puts the hooks in place again
    for name in missing_extra(config.custom_apis):
        logger.warning("custom_apis: there is no function %s; it is left out.", name)
    wanted = {(id(api.owner), api.attr): api for api in hooked_apis(mindspore, *lists)}
    for key in [key for key, api in _hooked.items() if wanted.get(key) != api]:
        _core.remove_api(_hooked[key].owner, key[1])
        del _hooked[key]
    for key, api in wanted.items():
        if key not in _hooked:
            _hooked[key] = api
            why = _add(api)
            if why:
                logger.warning("%s.%s cannot be recorded: %s", api.prefix, api.name, why)


def _forget_apis() -> None:
    global _lists
    _lists = None
    for owner, attr in [(api.owner, key[1]) for key, api in _hooked.items()]:
        _core.remove_api(owner, attr)
    _hooked.clear()


def _add(api: Api) -> str:
    details = {"writes": (id(api.owner), api.attr) in _all_writes(), "returns": api.prefix == "Distributed"}
    return _core.add_api(api.owner, api.attr, api.prefix, api.name, FOCUS, False, details)


# ---- when values are read -----------------------------------------------------------------------------------------------


def _all_writes() -> dict:
    if not _writes:
        sites = [*write_sites(mindspore), *(Site(kind, "__call__") for kind in writing_primitives(mindspore))]
        _writes.update({(id(site.owner), site.attr): site for site in sites})
    return _writes


def _exchange_writes(config: Config) -> None:
    """Hooks what may change tensors and is not recorded."""
    records = config.level in ("L1", "mix")
    for key, site in _all_writes().items():
        recorded = records and (key in _hooked or site.owner in _known_classes)
        if recorded:
            _forget_write(key)
        elif key not in _write_hooks:
            _write_hooks.add(key)
            details: dict = {"role": "write"}
            if site.stand_in is not None:
                details["stand_in"] = site.stand_in
            _core.add_api(site.owner, site.attr, "write", site.attr, FOCUS, False, details)


def _forget_write(key: tuple) -> None:
    if key in _write_hooks:
        _write_hooks.discard(key)
        _core.remove_api(_writes[key].owner, key[1])


def _watch_passes() -> None:
    """Tells the recorder where a forward pass begins that will be differentiated, and where its backward has ended."""
    if "passes" in _compiled:
        return
    _compiled["passes"] = True
    executor = getattr(_api_module("_pynative_executor"), "_pynative_executor", None)
    for name, role in (("new_graph", "new_graph"), ("grad", "backward")):
        if hasattr(type(executor), name):
            _core.add_api(type(executor), name, "pass", name, FOCUS, False, {"role": role})


# ---- compiled code ------------------------------------------------------------------------------------------------------


def _watch_compiler(config: Config) -> None:
    """Has graphs compiled as without us, and what they run recorded, or counted at levels without functions, as a whole."""
    expression = mindspore._c_expression
    if not _compiled:
        for name in ("JitExecutor_", "GraphExecutor_"):
            executor = getattr(expression, name, None)
            if executor is not None and hasattr(executor, "compile"):
                _core.add_api(executor, "compile", "compile", name, FOCUS, False, {"role": "compile"})
        _compiled["role"] = ""
    executor = _jit_executor()
    role = "record" if config.level in ("L1", "mix") else "leave"
    if executor is None or role == _compiled["role"]:
        return
    if _compiled["role"]:
        _core.remove_api(executor, "__call__")
    _compiled["role"] = role
    details: dict = {
        "resolve": _compiled_name if role == "record" else _left_alone,
        "skip_self": True,
        "skip_owner": True,
        "writes": True,  # it may assign to parameters
    }
    if role == "leave":
        details["role"] = "leave"
    _core.add_api(executor, "__call__", "Jit", "jit", FOCUS, False, details)


def _jit_executor() -> Any:
    """Returns the class of what ms.jit makes of a function; it has moved between releases."""
    for name in ("_JitExecutor", "_MindsporeFunctionExecutor"):
        found = getattr(_api_module(name), name, None)
        if found is not None:
            return found
    return None


def _api_module(name: str) -> Any:
    for path in ("graph", "common"):
        api = getattr(getattr(mindspore, path, None), "api", None)
        if hasattr(api, name):
            return api
    return None


def _name_of(executor: Any) -> str:
    owner = getattr(executor, "obj", None)
    return type(owner).__name__ if isinstance(owner, nn.Cell) else getattr(executor.fn, "__name__", "function")


def _compiled_name(executor: Any) -> str:
    name = _name_of(executor)
    _core.note_skip("compiled by ms.jit and recorded as a whole", name)
    return f"Jit.{name}"


def _left_alone(executor: Any) -> str:
    return f"{_name_of(executor)} was compiled by ms.jit"


# ---- Cells and Primitives -----------------------------------------------------------------------------------------------


def named_cells(model: Any, number: Optional[int] = None) -> Iterator[tuple[str, Any]]:
    """Yields every Cell below the roots with the prefix of its entries; for several models it has the model's number."""
    several = isinstance(model, (list, tuple))
    for index, root in enumerate(model if several else [model], number or 0):
        prefix = f"Cell.{index}." if several or number is not None else "Cell."
        for name, cell in root.cells_and_names():
            if cell is not root:
                yield f"{prefix}{name}.{type(cell).__name__}", cell


def add_model(model: Any, config: Config, number: Optional[int] = None) -> None:
    """Hooks the Cells of a model or of several, and the Primitives among their attributes."""
    if config.level in ("L1", "mix"):
        for root in model if isinstance(model, (list, tuple)) else [model]:
            for _, cell in root.cells_and_names():
                _add_primitives(cell)
    if config.level in ("L0", "mix"):
        for base, cell in named_cells(model, number):
            if cell not in _known_cells:  # of another model, too: it keeps its first name
                _known_cells.add(cell)
                _core.add_cell(cell, base)


def _add_primitives(cell: Any) -> None:
    found = {**vars(cell), **(vars(cell).get("_primitives") or {})}
    for name, value in found.items():
        if not isinstance(value, mindspore.ops.Primitive):
            continue
        kind = type(value)
        _core.name_primitive(value, f"Primitive.{name}.{kind.__name__}", _communication(value))
        if kind not in _known_classes:
            _known_classes.add(kind)
            key = (id(kind), "__call__")
            details = {"primitive": True, "writes": key in _all_writes()}
            _forget_write(key)
            _core.add_api(kind, "__call__", "Primitive", kind.__name__, FOCUS, False, details)


def _communication(primitive: Any) -> Optional[dict]:
    """What a communication was made with (group, reduction, rank): its calls do not say it. None for other Primitives."""
    made_with = getattr(primitive, "init_attrs", None) or {}
    if "group" not in made_with:
        return None
    known = {name: getattr(primitive, name, value) for name, value in made_with.items()}  # group: by its resolved name
    return {name: value for name, value in known.items() if isinstance(value, (str, int, float))}


# ---- functions of the user's choice -------------------------------------------------------------------------------------


def add_custom(module: Any, api: str, prefix: Any = None) -> str:
    """Hooks one function. Returns why that is impossible, or an empty string."""
    if not callable(getattr(module, api, None)):
        return f"{module!r} has no function of this name"
    prefix = prefix or getattr(module, "__name__", type(module).__name__)
    why = _core.add_api(module, api, prefix, api, FOCUS, False)
    if not why:
        _custom.append((module, api))
    return why


def remove_custom(module: Any, api: str) -> bool:
    """Undoes add_custom(). Returns False if there is nothing to undo."""
    known = [i for i, (owner, attr) in enumerate(_custom) if owner is module and attr == api]
    if known:
        del _custom[known[-1]]
        _core.remove_api(module, api)
    return bool(known)


# ---- inference ----------------------------------------------------------------------------------------------------------


def count_tokens(model: Any, token_range: Any) -> None:
    """Records the forward passes of the root model numbered first to last, counted from 0, once (inference)."""
    root = model[0] if isinstance(model, (list, tuple)) else model
    first, last = token_range
    token = 0
    _core.pause()

    def count(cell: Any, args: Any) -> None:
        nonlocal token
        if token == first:
            _core.resume()
        elif token == last + 1:
            _core.pause()
            handle.remove()
        token += 1

    handle = cell_hooks.before(root, count, prepend=True)

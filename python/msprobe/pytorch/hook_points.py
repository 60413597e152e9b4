"""Where PyTorch calls us. Each hook is behind the guard, and no compiler sees it: what is compiled is what it was without us.

While a function is traced none of our hooks is there. While what was compiled runs, those are away that its guards would notice:
hooks of modules that have others besides, of optimizers, of all modules, and functions that ours stand in for.
"""

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from .. import _core
from .._capture.guard import shielded
from . import closures, regions

_OF_MODULES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


def callback(function: Callable) -> Any:
    """What PyTorch can call in the place of a function: guarded, not compiled, and of a copy of a model it does nothing."""
    return _core.callback(shielded(function))


class _Home:
    """Dicts of hooks of one object, some of which are ours."""

    def __init__(self, owner: Any) -> None:
        # Modules of Python and classes live as long as the process.
        self._owner = weakref.ref(owner) if isinstance(owner, torch.nn.Module) else lambda: owner
        self.is_module = isinstance(owner, torch.nn.Module)
        self.ids: set = set()
        self.names: tuple = ()
        self._away: list = []  # (name, dict, what it held), while ours are away
        # Its forward is compiled by itself, in the middle of other code, only because it has hooks.
        self._is_of_torch = type(owner).__module__.startswith(("torch.nn.", "torch.ao."))
        self.crowded = self.is_module and self._has_others(owner)
        self.is_plain = False

    def _has_others(self, owner: Any) -> bool:
        if self._is_of_torch:
            return True
        return any(
            key not in self.ids and type(hook).__module__ != "msprobe._core"
            for name in (_OF_MODULES[0], _OF_MODULES[2])
            for key, hook in vars(owner).get(name, {}).items()
        )

    def plain_dicts(self) -> list:
        """[(self, attributes, name, dict, what it holds, whether that is hidden)], if no dict has hooks of others."""
        owner = self._owner()
        self.is_plain = self.is_module and owner is not None and not self._away
        found = []
        for name in self.names if self.is_plain else ():
            hooks = vars(owner).get(name)
            if hooks is None or (not self._is_of_torch and name not in (_OF_MODULES[0], _OF_MODULES[2])):
                continue
            self.is_plain = self.is_plain and self.ids.issuperset(hooks)
            if not self._is_of_torch or hooks:
                found.append((self, vars(owner), name, hooks, dict(hooks), self._is_of_torch))
        return found if self.is_plain else []

    def hide(self, names: tuple) -> None:
        owner = self._owner()
        if owner is None or self._away:
            return
        if self.is_module:
            self.crowded = self._has_others(owner)
        for name in names:
            hooks = vars(owner).get(name)
            if hooks and not self.ids.isdisjoint(hooks):
                self._away.append((name, hooks, dict(hooks)))
                if not self.is_module:  # optimizers call hooks while they go through the dict
                    hooks = vars(owner)[name] = hooks.copy()
                for key in self.ids & hooks.keys():
                    del hooks[key]

    def show(self) -> None:
        away, self._away = self._away, []
        owner = self._owner()
        for name, hooks, before in away if owner is not None else ():
            if self.is_module:
                self.put_back(hooks, before)
                continue
            now = vars(owner)[name]
            for key in before.keys() - now.keys() - self.ids:
                hooks.pop(key, None)
            hooks.update({key: hook for key, hook in now.items() if key not in before})
            vars(owner)[name] = hooks

    def put_back(self, hooks: dict, before: dict) -> None:
        """In the order in which they were; what others removed or added meanwhile is removed or added."""
        now = dict(hooks)
        hooks.clear()
        hooks.update({key: hook for key, hook in before.items() if key in self.ids or key in now})
        hooks.update({key: hook for key, hook in now.items() if key not in before})


_homes: dict = {}  # id of the owner -> _Home
_patches: list = []  # in the order in which they were made
_level = 0
_lock = threading.RLock()
_plain: Optional[list] = None  # of plain_dicts() of all


# Most modules have hooks of ours alone. Their dicts are emptied in one loop, for regions begin and end often.
def _hide_plain() -> None:
    global _plain
    if _plain is None:
        _plain = [entry for home in _homes.values() for entry in home.plain_dicts()]
    odd: set = set()
    for home, own, name, hooks, held, is_hidden in _plain:
        if own.get(name) is not hooks or len(hooks) != len(held):
            odd.add(home)
        elif is_hidden:
            hooks.clear()
    if odd:
        _show_plain([entry for entry in _plain if entry[0] in odd and not entry[3]])
        _leave_out(odd)


def _show_plain(entries: list) -> None:
    for home, _, _, hooks, held, is_hidden in entries:
        if is_hidden and not hooks:
            hooks.update(held)
        elif is_hidden:
            home.put_back(hooks, held)


def _leave_out(odd: set) -> None:
    global _plain
    _plain = [entry for entry in _plain or () if entry[0] not in odd]
    for home in odd:
        home.is_plain = False


@contextlib.contextmanager
def _other_hooks() -> Iterator[None]:
    """Around a change of what is ours."""
    global _plain
    with _lock:
        if _plain is not None and _level:
            _show_plain(_plain)
        _plain = None
        yield
        if _level:
            _hide_plain()


def _forget_owner(key: int) -> None:
    global _plain
    _homes.pop(key, None)
    if not _level:
        _plain = None  # it holds attributes of the owner


class HookSet:
    """Hooks of one part of the tool, which it removes together."""

    def __init__(self) -> None:
        """Holds none."""
        self._undo: list = []

    def __bool__(self) -> bool:
        """Tells whether there are hooks."""
        return bool(self._undo)

    def before(self, module: torch.nn.Module, call: Callable, kwargs: bool = False, prepend: bool = False) -> None:
        """Has a function called before each forward of a module."""
        handle = module.register_forward_pre_hook(_as_callback(call), with_kwargs=kwargs, prepend=prepend)
        self._keep(module, _OF_MODULES, handle)

    def after(self, module: torch.nn.Module, call: Callable, kwargs: bool = False, always: bool = False) -> None:
        """Has a function called after each forward of a module; `always`: also after one that fails, if PyTorch can."""
        options = {"always_call": True} if always and hasattr(module, _OF_MODULES[4]) else {}
        handle = module.register_forward_hook(_as_callback(call), with_kwargs=kwargs, **options)
        self._keep(module, _OF_MODULES, handle)

    def around_all(self, before: Callable, after: Callable) -> None:
        """Has functions called before and after each forward of every module."""
        from torch.nn.modules import module as home

        register = home.register_module_forward_hook
        options = {"always_call": True} if hasattr(home, "_global_forward_hooks_always_called") else {}
        names = tuple(name for name in vars(home) if name.startswith("_global_forward_"))
        self._keep(home, names, home.register_module_forward_pre_hook(callback(before)))
        self._keep(home, names, register(callback(after), **options))

    def around_step(
        self, optimizer: Optional[Any], before: Optional[Callable], after: Optional[Callable], whole: bool = False
    ) -> None:
        """Has functions called with (optimizer, args, kwargs) around the steps of an optimizer; None: of every one.

        The first one is called right before the gradients are used: behind the closure, where the step is given one.
        `whole`: before the closure.
        """
        from torch.optim import optimizer as home

        if optimizer is None:
            owner, names = home, ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
            pre, post = home.register_optimizer_step_pre_hook, home.register_optimizer_step_post_hook
        else:
            owner, names = optimizer, ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
            pre, post = optimizer.register_step_pre_hook, optimizer.register_step_post_hook
        if before is not None:
            guarded = shielded(before)
            self._keep(owner, names, pre(callback(before if whole else closures.before_use(guarded))))
            if not whole:
                closures.before_running_use(optimizer, guarded)
        if after is not None:
            self._keep(owner, names, post(callback(after)))

    def on_gradient(self, tensor: torch.Tensor, call: Callable) -> None:
        """Has a function called with the gradient of a tensor."""
        self._undo.append(tensor.register_hook(_as_callback(call)).remove)

    def on_accumulated(self, parameter: torch.Tensor, call: Callable) -> None:
        """Has a function called with a parameter when a gradient was added to its own."""
        self._undo.append(parameter.register_post_accumulate_grad_hook(_as_callback(call)).remove)

    def on_node(self, node: Any, call: Callable) -> None:
        """Has a function called with what a node of the graph gives on, and what it was given."""
        handle = node.register_hook(_as_callback(call))

        def undo() -> None:
            handle.remove()
            undo.held = None  # an accumulator lives as long as someone holds it

        undo.held = node
        self._undo.append(undo)

    def instead(self, owner: Any, name: str, function: Callable) -> None:
        """Puts a function in the place of an attribute, which it calls; it guards what is ours in it itself."""
        patch = _Patch(owner, name, function)
        _patches.append(patch)
        patch.show()
        if _level:
            patch.hide()
        self._undo.append(patch.remove)

    def around(self, owner: Any, name: str, method: Callable) -> None:
        """Has a bound method called with (function, args, kwargs) in the place of an attribute, while its object lives."""
        original = getattr(owner, name)
        held = weakref.WeakMethod(method)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            alive = held()
            return original(*args, **kwargs) if alive is None else alive(original, args, kwargs)

        self.instead(owner, name, call)

    def also(self, undo: Callable[[], None]) -> None:
        """Has something else done by remove()."""
        self._undo.append(undo)

    def remove(self) -> None:
        """Removes them all, the last one first."""
        undo, self._undo = self._undo, []
        for one in reversed(undo):
            one()

    def _keep(self, owner: Any, names: tuple, handle: Any) -> None:
        watch()
        home = _homes.get(id(owner))
        if home is None or home._owner() is not owner:
            home = _homes[id(owner)] = _Home(owner)
            if home.is_module:
                weakref.finalize(owner, _forget_owner, id(owner)).atexit = False
        with _other_hooks():
            home.names = names
            home.ids.add(handle.id)

        def undo() -> None:
            with _other_hooks():
                handle.remove()
                home.ids.discard(handle.id)
            if not home.ids and _homes.get(id(owner)) is home:
                home.show()
                del _homes[id(owner)]

        self._undo.append(undo)


class _Patch:
    def __init__(self, owner: Any, name: str, function: Callable) -> None:
        self._owner, self._name, self._function = owner, name, function
        self._had = name in vars(owner)
        self._original = vars(owner).get(name)

    def show(self) -> None:
        if vars(self._owner).get(self._name) is self._original:
            setattr(self._owner, self._name, self._function)

    def hide(self) -> None:
        now = vars(self._owner).get(self._name)
        # Else another has wrapped it since, and it is only passed through.
        if now is self._function or getattr(now, "__func__", now) is self._function:
            if self._had:
                setattr(self._owner, self._name, self._original)
            else:
                delattr(self._owner, self._name)

    def remove(self) -> None:
        self.hide()
        if self in _patches:
            _patches.remove(self)


def _as_callback(call: Callable) -> Any:
    """Hooks that are made in C++ are guarded there."""
    return call if type(call).__module__ == "msprobe._core" else callback(call)


def watch() -> None:
    """Begins to look where compiled code begins and ends."""
    regions.watch()
    regions.on_hide(_hide)


def _hide(level: int) -> None:
    """Of what PyTorch finds: 0 nothing, 1 what the guards of compiled code look at, 2 all."""
    with _lock:
        _hide_more_or_less(level)


def _hide_more_or_less(level: int) -> None:
    global _level
    before, _level = _level, level
    if level and not before:
        for patch in reversed(_patches):
            patch.hide()
        _hide_plain()
    for home in list(_homes.values()):
        if home.is_plain and 2 not in (before, level):
            continue
        if level == 2 or (level == 1 and (home.crowded or not home.is_module)):
            home.hide(home.names)
        else:
            home.show()
    if before and not level:
        _show_plain(_plain or [])
        for patch in _patches:
            patch.show()

"""Stand-ins for packages that a program imports and a test has no use for: drivers of hardware, servers, other frameworks."""

import ast
import builtins
import importlib.abc
import importlib.machinery
import sys
import types
from pathlib import Path


class StandIn:
    """Can be called, decorated with, derived from, subscripted and asked for anything; answers with more of the same."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *args, **kwargs):
        # As a decorator it leaves what it decorates as it is.
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, types.FunctionType)):
            return args[0]
        return StandIn(self.__name__)

    def __mro_entries__(self, bases):
        return ()

    def __getitem__(self, key):
        return self

    def __iter__(self):
        return iter(())

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __instancecheck__(self, value):
        return False

    def __subclasscheck__(self, value):
        return False

    def __bool__(self):
        return False

    def __gt__(self, other):
        return False


class _Module(types.ModuleType):
    __version__ = "0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = StandIn(name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self._packages = packages

    def find_spec(self, name, path=None, target=None):
        if any(name == package or name.startswith(package + ".") for package in self._packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def stand_in_for(*packages):
    """From here on these packages, and parts of packages such as a.b, are stand-ins, also where they are installed."""
    sys.meta_path.insert(0, _Finder(packages))


class _Globals(dict):
    """What a part of a file finds beside itself: builtins, what it is given, and stand-ins."""

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)
        return StandIn(name)


def part_of(path, name, **given):
    """A function, or a method as "Class.method", of a source file as it stands there, without the file's imports.

    given: names that are something instead of stand-ins.
    """
    nodes = ast.parse(Path(path).read_text(encoding="utf-8")).body
    for step in name.split("."):
        (found,) = [node for node in nodes if getattr(node, "name", None) == step]
        nodes = getattr(found, "body", [])
    scope = _Globals(given, __name__=Path(path).stem)
    exec(compile(ast.Module([found], []), str(path), "exec"), scope)
    return scope[found.name]

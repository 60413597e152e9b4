"""The first sitecustomize on the path of every Python below `msprobe run`: attaches when PyTorch or MindSpore has been imported.

Runs in whatever interpreter the user's command starts, with or without msprobe, so it needs nothing but the standard
library. The sitecustomize that would have been imported without us is imported as if we were not there.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _say(text):
    if os.environ.get("LOCAL_RANK", "0") == "0":  # once for all processes of a torchrun
        sys.stderr.write("[msprobe] " + text + "\n")


def _attach(framework):
    try:
        from msprobe._attach import session
    except ImportError as error:
        why = f"{sys.executable} cannot import msprobe ({error}); install msprobe into this Python"
        _say(f"nothing is recorded: {why if error.name else error}. The run goes on.")
        return
    try:
        session.attach(framework)
    except (
        AttributeError,
        TypeError,
        ValueError,
        RuntimeError,
        OSError,
    ) as error:  # of a framework unlike those we know
        _say(f"nothing is recorded: {type(error).__name__}: {error}. The run goes on.")


class _AfterFramework:
    """A finder that finds nothing by itself: it lets the others find a framework, and attaches when that has been executed."""

    def __init__(self):
        self._searching = False

    def find_spec(self, name, path=None, target=None):
        if name not in ("torch", "mindspore") or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader:
    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:  # the first framework is the one that is recorded
            sys.meta_path.remove(self._finder)
            _attach(module.__name__)


def _import_the_other():
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("MSPROBE_ATTACH"):
    sys.meta_path.insert(0, _AfterFramework())
_import_the_other()

"""The call of a model as it is found on the stack: its arguments, and the frames of the script around it."""

import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

_LIBRARIES = tuple(
    {os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "purelib", "platlib")}
)


def arguments_of(root: Any) -> tuple:
    """Returns the positional and the keyword arguments of the call of `root` that is running; empty without one."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("_call_impl", "__call__"):
            names = frame.f_locals
            if names.get("self") is root and "args" in names and "kwargs" in names:
                return tuple(names["args"]), dict(names["kwargs"])
        frame = frame.f_back
    return (), {}


@functools.lru_cache(maxsize=4096)
def is_users_file(path: str) -> bool:
    """Tells whether a source file belongs to the user's program and not to a library, Python or msprobe."""
    if not path or path.startswith("<"):
        return False
    real = os.path.realpath(path)
    parts = real.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    return not real.startswith((*_LIBRARIES, _OWN))


_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "")


def users_frames() -> Iterator[types.FrameType]:
    """Yields the frames of the user's program, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_users_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


@functools.lru_cache(maxsize=4096)
def is_users_module(name: str) -> bool:
    """Tells whether a module of sys.modules belongs to the user's program."""
    if name == "__main__":
        return True
    path = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(path, str) and is_users_file(path)

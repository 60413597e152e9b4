"""Counts the calls of random functions and where they come from. Nothing of their results changes."""

from __future__ import annotations

import functools
import linecache
import os
import random
import sys
from types import FrameType
from typing import Any, Callable

_MOST_STACKS = 10_000  # of one function: a loop that builds code as it goes would fill the memory

# Function -> stack as (file, line, name) of each frame, innermost first -> calls.
_calls: dict[str, dict[tuple[tuple[str, int, str], ...], int]] = {}


def _stack(frame: FrameType | None) -> tuple[tuple[str, int, str], ...]:
    frames = []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(frames)


def counted(function: Callable, name: str) -> Callable:
    """The function with its calls counted under a name; one that is counted already stays as it is."""
    if getattr(function, "__msprobe_counted__", False):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        stacks = _calls.setdefault(name, {})
        stack = _stack(sys._getframe(1))
        if stack in stacks or len(stacks) < _MOST_STACKS:
            stacks[stack] = stacks.get(stack, 0) + 1
        return function(*args, **kwargs)

    call.__msprobe_counted__ = True
    return call


def replace(owner: Any, name: str, functions: tuple[str, ...]) -> None:
    """Counts the functions of a module or class that it has."""
    for function in functions:
        found = getattr(owner, function, None)
        if callable(found):
            setattr(owner, function, counted(found, f"{name}.{function}"))


def replace_common() -> None:
    """Counts those of Python and NumPy."""
    replace(random, "random", ("random", "randint", "uniform", "choice", "shuffle", "sample", "gauss"))
    if "numpy" in sys.modules or _has_numpy():
        import numpy

        replace(
            numpy.random,
            "np.random",
            ("rand", "randn", "randint", "choice", "normal", "uniform", "shuffle", "permutation"),
        )


def _has_numpy() -> bool:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def _frame_text(frame: tuple[str, int, str]) -> str:
    file, line, function = frame
    return f"File {os.path.abspath(file)}, line {line}, in {function}, {linecache.getline(file, line).strip()}"


def taken() -> dict[str, list[dict[str, Any]]]:
    """Calls so far, as they stand in random/rankN.json: outermost frame first."""
    return {
        name: [{"count": count, "stack": [_frame_text(f) for f in reversed(stack)]} for stack, count in stacks.items()]
        for name, stacks in _calls.items()
    }

"""The one guard around what a framework calls back: no fault of ours reaches the training, and what is lost is counted."""

import atexit
import functools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from .errors import MsprobeException
from .log import logger

_MARK = "_msprobe_of_the_script"
_lock = threading.Lock()
_lost: Counter = Counter()  # function -> calls


def shielded(function: Callable, otherwise: Any = None) -> Callable:
    """Wraps a function that a framework calls.

    What the tool raises on purpose (MsprobeException) and what functions of the script raise (of_the_script) goes on.

    Args:
        function: Of ours.
        otherwise: What the framework gets where the function fails.

    Returns:
        A function for the framework.
    """

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if isinstance(error, MsprobeException) or hasattr(error, _MARK):
                raise
            _count(function, error)
            return otherwise

    return call


def of_the_script(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls a function that the script gave us: what it raises is the script's, and the guard lets it through."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        setattr(error, _MARK, True)
        raise


def _count(function: Callable, error: Exception) -> None:
    name = getattr(function, "__qualname__", type(function).__qualname__).replace(".<locals>", "")
    with _lock:
        if not _lost:
            atexit.register(shielded(_tell))
        _lost[name] += 1
        first = _lost[name] == 1
    if first:
        logger.error("what %s was to see is lost, the training goes on: %s: %s", name, type(error).__name__, error)


def _tell() -> None:
    for name, times in _lost.items():
        if times > 1:
            logger.error("%s failed %d times: what it was to see is lost", name, times)

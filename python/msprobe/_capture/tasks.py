"""Tasks that decide after an op ran whether it is kept, and tasks that this release does not have."""

import os
import sys
import threading
from typing import Any, Optional

from .. import _core
from .config import Config, MsprobeException
from .framework import Framework
from .log import logger
from .words import say, wrong

_KINDS = {"overflow_check": "overflow", "diff_check": "difference", "exception_dump": "exception"}
_FILES = ("dump.json", "stack.json", "construct.json", "dump_summary.json")


def decides(config: Config) -> str:
    """Returns the kind of decision of such a task, else an empty string."""
    if config.task == "tensor" and config.bench_path:
        return "difference"
    return _KINDS.get(config.task, "")


def check(config: Config, framework: Framework) -> None:
    """Rejects configurations that cannot be carried out, before anything is hooked."""
    unavailable = framework.unavailable(config)
    if unavailable:
        _refuse(unavailable)
    kind = decides(config)
    if kind and config.level not in framework.levels_of_decisions:
        allowed = say("L0, L1, mix with task %(task)s", task=config.task)
        _refuse(wrong("level", config.level, allowed, config.place("level")))
    if kind == "overflow" and config.summary_mode == "xor":
        allowed = "statistics, md5, because overflow_check looks at these"
        _refuse(wrong("summary_mode", "xor", allowed, config.place("summary_mode")))
    if kind == "difference":
        if not config.bench_path:
            text = "bench_path is missing; task diff_check compares with an earlier md5 dump (%(place)s)"
            _refuse(say(text, place=config.place(config.task)))
        if config.summary_mode != "md5":
            allowed = 'md5, because bench_path compares checksums: set "summary_mode": "md5"'
            _refuse(wrong("summary_mode", config.summary_mode, allowed, config.place("summary_mode")))
        error = _core.check_bench(config.bench_path)
        if error:
            text = "bench_path is %(path)s: %(why)s (%(place)s)"
            _refuse(say(text, path=config.bench_path, why=error, place=config.place("bench_path")))


def _refuse(text: str) -> None:
    raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def set_up(config: Config, framework: Framework) -> None:
    """Tells the configured recorder what to keep."""
    kind = decides(config)
    if kind == "overflow":
        _core.configure_trigger("overflow", config.overflow_nums)
        if config.check_mode != "all" and not framework.has_overflow_flag:
            logger.warning(
                "check_mode %s chooses a kind of overflow flag, which only an NPU in saturation mode has: outputs are "
                "checked for NaN and infinities instead.",
                config.check_mode,
            )
    elif kind == "difference":
        _core.configure_trigger("difference", config.diff_nums, config.bench_path)
    elif kind == "exception":
        _core.configure_trigger("exception", last_ops=config.last_ops)
        _watch_uncaught()
    else:
        _core.configure_trigger("")


# ---- steps --------------------------------------------------------------------------------------------------------------


def begin_step(config: Config, step: int, rank: Optional[int]) -> None:
    """Opens the matching step of the reference dump (task diff_check)."""
    if decides(config) != "difference":
        return
    error = _core.begin_trigger_step(step, -1 if rank is None else rank)
    if error:
        logger.error("step %d cannot be compared, nothing of it is saved: %s", step, error)


def end_step(config: Config, directory: str, recorded: int) -> None:
    """Removes the directory of a step of which nothing was kept."""
    kind = decides(config)
    if not kind:
        return
    missing = _core.trigger_state()["not_in_bench"]
    if missing:
        logger.warning("%d ops of %s are not in the bench and were not compared.", missing, directory)
    if recorded:
        return
    for name in _FILES:
        try:
            os.remove(os.path.join(directory, name))
        except OSError:
            pass  # not written without extra_info
    for path in (os.path.join(directory, "dump_tensor_data"), directory, os.path.dirname(directory)):
        try:
            os.rmdir(path)
        except OSError:
            pass  # something else is there


# ---- uncaught exceptions ------------------------------------------------------------------------------------------------

_watching = False


def _watch_uncaught() -> None:
    """Writes what was held back before an uncaught exception ends the script, then calls the previous hook."""
    global _watching
    if _watching:
        return
    _watching = True
    in_main, in_thread = sys.excepthook, threading.excepthook

    def main_died(*error: Any) -> None:
        _core.keep_last_ops()
        in_main(*error)

    def thread_died(arguments: Any) -> None:
        _core.keep_last_ops()
        in_thread(arguments)

    sys.excepthook, threading.excepthook = main_died, thread_died

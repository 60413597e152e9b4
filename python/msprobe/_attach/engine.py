"""What vLLM calls in each of its processes (entry point `vllm.general_plugins`).

`msprobe run` and the variable MSPROBE_CONFIG alike record the steps of an engine. Its processes write into a directory of
their own, so that a trainer below the same command keeps its ranks.
"""

import json
import multiprocessing
import os
import sys
import time

ENGINES = ("vllm", "vllm_ascend", "sglang")  # packages
CONFIG = "MSPROBE_CONFIG"  # the configuration, where no `msprobe run` stands before the engine
STAGE = "rollout"  # below dump_path


def register() -> None:
    """Attaches to this process of an engine, and to what is forked from it, if anybody asked for that."""
    if not os.environ.get(CONFIG) and "MSPROBE_ATTACH" not in os.environ:
        return
    # Nobody who did not ask pays for these.
    from .._capture.guard import shielded
    from . import request as requests

    if requests.VARIABLE not in os.environ:
        _ask(os.environ[CONFIG], requests.VARIABLE)
    if requests.read().mode != "run":
        return
    shielded(_attach)(multiprocessing.parent_process() is not None)
    os.register_at_fork(after_in_child=shielded(_attach_again))


def caller() -> str:
    """Finds the engine that the calling code runs in.

    Returns:
        Its package, "" if there is none.
    """
    frame = sys._getframe(1) if any(name in sys.modules for name in ENGINES) else None
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in ENGINES:
            return package
        frame = frame.f_back
    return ""


def _ask(config: str, variable: str) -> None:
    """Puts what `msprobe run` would ask for into the environment, for the processes below, too."""
    asked = {"mode": "run", "config": os.path.abspath(config), "step_by": "forward", "began": time.time()}
    os.environ[variable] = json.dumps(asked)


def _attach(is_child: bool) -> None:
    from .._capture.log import logger
    from . import session

    try:
        session.attach("torch")
    except SystemExit:  # what is wrong with the configuration has been said
        logger.warning("nothing is recorded of this engine. It goes on.")
        return
    if is_child:
        session.write_below(STAGE)


def _attach_again() -> None:
    """A forked child has stopped watching; an engine's is where the model runs."""
    if "torch" not in sys.modules:
        return
    from . import session

    session.forget()
    _attach(True)

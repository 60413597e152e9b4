"""What releases of MindSpore lack: a task that a release cannot do right is refused, or its steps say what is missing in them."""

import re

import mindspore

from .. import _core
from .._capture.config import Config
from .._capture.free_benchmark.settings import BACKWARD
from .._capture.free_benchmark.settings import Settings as BenchmarkSettings
from .._capture.log import logger
from .._capture.words import say

_NO_GRADIENTS = "this release of MindSpore does not tell nodes of the backward pass: entries have no gradients"
_told: list = []


def release() -> tuple:
    """Returns the first two numbers of the version."""
    return tuple(int(number) for number in re.findall(r"\d+", mindspore.__version__)[:2])


def unavailable(config: Config) -> str:
    """Explains what of the configuration this release cannot do; empty if it can all."""
    if config.task == "free_benchmark" and BenchmarkSettings.of(config.section).fuzz_stage == BACKWARD:
        if release() < (2, 9):  # there gradients that are taken at stop() change the steps that follow
            return _needs("fuzz_stage backward", "2.9", config.place("fuzz_stage"))
    if config.task == "overflow_check" and config.level == "L2" and not hasattr(mindspore, "MsDispatchMode"):
        on_host = mindspore.get_context("device_target") == "CPU"
        if on_host and mindspore.get_context("mode") == mindspore.PYNATIVE_MODE:
            return _needs(say("task overflow_check at level L2"), "2.9", config.place("level"))
    return ""


def _needs(what: str, since: str, place: str) -> str:
    text = "%(what)s needs MindSpore %(since)s or newer, this is %(release)s (%(place)s)"
    return say(text, what=what, since=since, release=mindspore.__version__, place=place)


def _tells_gradients() -> bool:
    for place in ("graph", "common"):
        api = getattr(getattr(mindspore, place, None), "api", None)
        executor = getattr(api, "_pynative_executor", None)
        if hasattr(executor, "queue_backward_final_callback"):
            return hasattr(mindspore.Tensor, "_grad_node") and hasattr(mindspore.Tensor, "_output_index")
    return False


def tell_at_construction() -> None:
    """Logs once what no step of this run will have."""
    if not _tells_gradients() and not _told:
        _told.append(_NO_GRADIENTS)
        logger.warning("%s (%s).", _NO_GRADIENTS, mindspore.__version__)


def tell_in_step() -> None:
    """Puts the same into the summary of a step."""
    for text in _told:
        _core.note_skip(text, mindspore.__version__)

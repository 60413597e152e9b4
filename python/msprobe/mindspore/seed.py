"""seed_all: makes two runs of a MindSpore script draw the same random numbers."""

import os
import random
from typing import Any

import mindspore

from .._capture.config import MsprobeException
from .._capture.config.keys import MAX_SEED
from .._capture.words import say, wrong


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seeds Python, NumPy and MindSpore, so that two runs draw the same random numbers.

    Call it before the network is built. PYTHONHASHSEED and HCCL_DETERMINISTIC are set as well; the first affects processes
    started from here on.

    Args:
        seed: 0 to 2**32 - 1.
        mode: Use deterministic algorithms only (`deterministic` of mindspore.set_context).
        rm_dropout: Make dropout keep every element, unscaled, for the rest of the process: ops.Dropout, Dropout2D and
            Dropout3D made from here on, and mint.nn.functional.dropout.

    Raises:
        MsprobeException: `seed` is out of range or not an int, or another argument is not a bool.
    """
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise _invalid("seed", seed, say("an integer from %(least)s to %(most)s", least=0, most=MAX_SEED))
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout)):
        if not isinstance(value, bool):
            raise _invalid(name, value, "True or False")
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    mindspore.set_seed(seed)  # NumPy's, too
    mindspore.set_context(deterministic="ON" if mode else "OFF")
    os.environ["HCCL_DETERMINISTIC"] = str(mode)
    if rm_dropout:
        _remove_dropout()


def _invalid(name: str, value: Any, allowed: str) -> MsprobeException:
    text = wrong(name, repr(value), allowed, f"argument {name} of seed_all")
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _remove_dropout() -> None:
    """Classes and functions stay the objects they are, so that references taken earlier keep every element as well."""
    from mindspore.mint.nn import functional

    for kind in (mindspore.ops.Dropout, mindspore.ops.Dropout2D, mindspore.ops.Dropout3D):
        if not hasattr(kind.__init__, "msprobe_keeps_all"):
            kind.__init__ = _keeping_all(kind.__init__)
    functional.dropout.__code__ = _dropout.__code__


def _keeping_all(original: Any) -> Any:
    def init(self: Any, keep_prob: float = 0.5, *args: Any, **kwargs: Any) -> None:
        original(self, 1.0, *args, **kwargs)

    init.msprobe_keeps_all = True  # type: ignore[attr-defined]
    return init


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return input

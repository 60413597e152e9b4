"""Arguments of the methods of PrecisionDebugger, and what is wrong with them."""

import os
from collections.abc import Sequence
from typing import Any, NoReturn, Optional, Union

import torch

from .config import MsprobeException
from .words import say, wrong

ModelOrModels = Union[torch.nn.Module, Sequence[torch.nn.Module]]


def fifth_argument(args: tuple, model: Any, step: Any) -> tuple:
    """Newer scripts pass `step` fifth, older ones `model` fifth and `step` sixth."""
    if len(args) > 2:
        raise TypeError(f"PrecisionDebugger() takes at most 6 positional arguments ({4 + len(args)} given)")
    for value in args:
        if is_model(value):
            model = value
        elif value is not None:
            step = value
    return model, step


def is_model(value: Any) -> bool:
    """Tells whether it is a module or a list of modules."""
    if isinstance(value, torch.nn.Module):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(m, torch.nn.Module) for m in value)


def is_index(value: Any) -> bool:
    """Tells whether it is an integer, 0 or greater."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_model(model: Any) -> None:
    """Rejects anything that is not a model."""
    models = model if isinstance(model, (list, tuple)) else [model]
    if not is_model(model) or any(isinstance(m, torch.jit.ScriptModule) for m in models):
        text = "%(name)s is %(value)s; allowed: %(allowed)s"
        allowed = say("torch.nn.Module (not a ScriptModule), or a list of them")
        refuse(say(text, name="model", value=f"a {type(model).__name__}", allowed=allowed))


def check_start(token_range: Any, rank_id: Any) -> None:
    """Rejects wrong arguments of start()."""
    if token_range is not None:
        fits = isinstance(token_range, (list, tuple)) and len(token_range) == 2 and all(map(is_index, token_range))
        if not fits or token_range[0] > token_range[1]:
            refuse(wrong("token_range", repr(token_range), "[first, last], counted from 0, both included", "start"))
    if rank_id is not None and not is_index(rank_id):
        refuse(wrong("rank_id", repr(rank_id), "an integer from 0", "start"))


def refuse(text: str) -> NoReturn:
    """Raises the exception for an invalid argument."""
    raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def rank_of_process() -> Optional[int]:
    """Of torch.distributed; before it is initialised, what the launcher said: ranks must not share a directory."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdecimal() and size.isdecimal() and int(rank) < int(size) > 1:
        return int(rank)
    return None

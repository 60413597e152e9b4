"""Arguments of the methods of PrecisionDebugger that are PyTorch's."""

from collections.abc import Sequence
from typing import Any, Union

import torch

from .._capture.arguments import is_model, refuse
from .._capture.words import say

ModelOrModels = Union[torch.nn.Module, Sequence[torch.nn.Module]]


def fifth_argument(args: tuple, model: Any, step: Any) -> tuple:
    """Newer scripts pass `step` fifth, older ones `model` fifth and `step` sixth."""
    if len(args) > 2:
        raise TypeError(f"PrecisionDebugger() takes at most 6 positional arguments ({4 + len(args)} given)")
    for value in args:
        if is_model(value, torch.nn.Module):
            model = value
        elif value is not None:
            step = value
    return model, step


def check_model(model: Any) -> None:
    """Rejects anything that is not a model."""
    models = model if isinstance(model, (list, tuple)) else [model]
    if not is_model(model, torch.nn.Module) or any(isinstance(m, torch.jit.ScriptModule) for m in models):
        text = "%(name)s is %(value)s; allowed: %(allowed)s"
        allowed = say("torch.nn.Module (not a ScriptModule), or a list of them")
        refuse(say(text, name="model", value=f"a {type(model).__name__}", allowed=allowed))

"""What a monitor of MindSpore can be given, and what may fail in it."""

from typing import Any

from mindspore import nn

from ..._capture.words import say

# What a hook of ours may raise by a fault, and must not let through to the training.
FAULTS = (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError, OSError)


def check_models(models: list) -> None:
    """Raises TypeError unless these are Cells."""
    for cell in models:
        if not isinstance(cell, nn.Cell):
            raise TypeError(say("the model is a %(kind)s; allowed: a mindspore.nn.Cell", kind=type(cell).__name__))


def check_optimizer(optimizer: Any) -> None:
    """Raises TypeError unless it is called with the gradients of its parameters."""
    if not isinstance(optimizer, nn.Cell) or not hasattr(optimizer, "parameters"):
        text = "the optimizer is a %(kind)s; allowed: one of mindspore.nn or mindspore.mint.optim"
        raise TypeError(say(text, kind=type(optimizer).__name__))

"""Hides from msprobe that MindSpore tells hooks of Cells that raised, which it does since 2.10."""

import inspect

from mindspore import nn


def as_older():
    """Call it before msprobe.mindspore is imported; what it returns, once the debugger is there: Cells need their own again."""
    register, always = nn.Cell.register_forward_hook, getattr(nn.Cell, "_forward_hook_always_called", None)
    if always is None:
        return lambda: None
    parameters = inspect.signature(register).parameters.values()
    shorter = inspect.signature(register).replace(parameters=[p for p in parameters if p.name != "always_call"])
    register.__signature__ = shorter
    del nn.Cell._forward_hook_always_called

    def put_back():
        nn.Cell._forward_hook_always_called = always
        del register.__signature__

    return put_back

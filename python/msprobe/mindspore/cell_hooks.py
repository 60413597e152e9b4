"""Hooks of Cells, registered as each release takes them. The guard is put around each here."""

import inspect
from collections.abc import Callable
from typing import Any

from mindspore import nn

from .._capture.guard import shielded

_AFTER = inspect.signature(nn.Cell.register_forward_hook).parameters
_BEFORE = inspect.signature(nn.Cell.register_forward_pre_hook).parameters

# Whether a hook can be told that a construct raised: since MindSpore 2.10.
TELLS_RAISED = "always_call" in _AFTER


def before(cell: nn.Cell, hook: Callable, **options: bool) -> Any:
    """Has a function called before a Cell runs.

    Args:
        cell: The Cell.
        hook: What is called.
        options: As MindSpore 2.9 has them: `prepend` (ahead of those that are there), `with_kwargs`.

    Returns:
        What removes it.
    """
    first = options.pop("prepend", False)
    if "prepend" in _BEFORE:
        return cell.register_forward_pre_hook(shielded(hook), prepend=first, **options)
    handle = cell.register_forward_pre_hook(shielded(hook), **options)
    if first:
        cell._forward_pre_hook.move_to_end(handle.handle_id, last=False)
    return handle


def after(cell: nn.Cell, hook: Callable, always: bool = False) -> Any:
    """Has a function called after a Cell has run.

    Args:
        cell: The Cell.
        hook: What is called.
        always: Also where the construct raised, if the release can tell (TELLS_RAISED).

    Returns:
        What removes it.
    """
    options = {"always_call": True} if always and TELLS_RAISED else {}
    return cell.register_forward_hook(shielded(hook), **options)

"""Where the steps of a MindSpore script lie that says nothing about them: from its calls of Cells and optimizers.

A root is a Cell with parameters that is called while no other runs, and that is neither an optimizer nor part of another
root. The first is the model. A step begins right before its forward. It is over when an optimizer of its parameters has been
called; when the root has ended, where the optimizer is part of it (TrainOneStepCell); and without optimizers when the next
forward begins.

MindSpore checks each Cell at its first call, by a method that graphs are not compiled from: there they are met.
"""

import functools
import gc
import os
import threading
import weakref
from typing import Any, Callable, Optional

import mindspore
from mindspore import nn

from .._capture.guard import shielded
from .._capture.log import logger
from ..mindspore import cell_hooks
from .client import IDLE, OPEN, OVER, Client

# Cells of the framework that wrap the network which the script made.
_WRAPPERS = (("TrainOneStepCell", "network"), ("WithLossCell", "_backbone"))


class CellSteps:
    """Watches the calls of Cells and optimizers, and tells its client where steps begin and end."""

    def __init__(self, client: Client, step_by: str = "auto"):
        self._client = client
        self._by_forward = step_by == "forward"
        self._state = IDLE
        self._roots: list = []  # weak references
        self._owner: Optional[int] = None  # the thread that calls the roots
        self._inside: Optional[int] = None  # id of the root that runs
        self._optimizers: weakref.WeakSet = weakref.WeakSet()
        self._searched = False
        self._enabled = True
        self._steps = 0

    def install(self) -> None:
        """Starts watching."""
        original = nn.Cell._self_check

        @functools.wraps(original)
        def check(cell: Any) -> None:
            original(cell)
            if self._enabled:
                self._met(cell)

        nn.Cell._self_check = check
        os.register_at_fork(after_in_child=shielded(self._disable))

    def explain(self) -> str:
        """Explains why no step was found; empty if one was."""
        if self._steps or not self._enabled:
            return ""
        return "no Cell with parameters was called in PyNative mode"

    @property
    def found_roots(self) -> bool:
        """Whether a model was called at all."""
        return bool(self._roots)

    def _disable(self) -> None:
        self._enabled = False

    # ---- Cells

    def _met(self, cell: Any) -> None:
        """A Cell is about to be called for the first time."""
        if mindspore.get_context("mode") != mindspore.PYNATIVE_MODE:
            return
        if is_optimizer(cell):
            self._watch_optimizer(cell)
        elif self._inside is None and self._owner in (None, threading.get_ident()) and self._is_new_root(cell):
            self._owner = threading.get_ident()
            self._roots.append(weakref.ref(cell))
            cell_hooks.before(cell, lambda *args: self._guarded(self._before_root, cell_of(args)), prepend=True)
            cell_hooks.after(cell, lambda *args: self._guarded(self._after_root, cell_of(args)), always=True)

    def _is_new_root(self, cell: Any) -> bool:
        if not any(True for _ in cell.get_parameters()):
            return False
        known = [root() for root in self._roots]
        return not any(part is cell for root in known if root is not None for _, part in root.cells_and_names())

    def _before_root(self, root: Any) -> None:
        if threading.get_ident() != self._owner:
            return
        if self._inside == id(root) and not cell_hooks.TELLS_RAISED:
            self._inside = None  # no root is part of itself: its last call has raised
        if self._inside is not None:
            return
        self._inside = id(root)
        if self._state == OPEN:
            if root is not self._roots[0]() or self._waits_for_optimizers():
                return
            self._end()
        if root is not self._roots[0]():
            return
        if self._state == OVER:
            self._state = IDLE
            self._client.close()
        self._state = OPEN
        self._steps += 1
        self._client.begin([_network_of(root)])

    def _after_root(self, root: Any) -> None:
        if self._inside != id(root):
            return
        self._inside = None
        if self._state == OPEN and any(is_optimizer(part) for _, part in root.cells_and_names()):
            self._end()

    def _end(self) -> None:
        if self._state == OPEN:
            self._state = OVER
            self._client.over()

    # ---- optimizers

    def _watch_optimizer(self, optimizer: Any) -> None:
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            cell_hooks.after(optimizer, lambda *args: self._guarded(self._has_stepped))

    def _has_stepped(self) -> None:
        # Inside a root the step is over with it.
        if self._inside is None and not self._by_forward and threading.get_ident() == self._owner:
            self._end()

    def _waits_for_optimizers(self) -> bool:
        if self._by_forward:
            return False
        if not self._searched:
            self._searched = True
            for found in [o for o in gc.get_objects() if issubclass(type(o), nn.Cell) and is_optimizer(o)]:
                self._watch_optimizer(found)
        return bool(self._optimizers)

    def _guarded(self, what: Callable, *values: Any) -> None:
        """Nothing of ours ends the training."""
        if not self._enabled:
            return
        try:
            what(*values)
        except (RuntimeError, ValueError, OSError, TypeError, AttributeError, KeyError) as error:
            self._enabled = False
            logger.error("capture ends here, the run goes on: %s: %s", type(error).__name__, error)


def cell_of(arguments: tuple) -> Any:
    """Returns the Cell among the arguments of its hook."""
    return arguments[0]


def is_optimizer(cell: Any) -> bool:
    """Tells whether a Cell is an optimizer."""
    return isinstance(cell, _optimizer_classes())


@functools.cache
def _optimizer_classes() -> tuple:
    experimental = getattr(getattr(mindspore, "experimental", None), "optim", None)
    found = [nn.Optimizer, getattr(experimental, "Optimizer", None)]
    return tuple(kind for kind in found if kind is not None)


def _network_of(root: Any) -> Any:
    """Returns the network inside what the framework puts around one for training."""
    for kind, attribute in _WRAPPERS:
        if isinstance(root, getattr(nn, kind, ())) and isinstance(getattr(root, attribute, None), nn.Cell):
            root = getattr(root, attribute)
    return root

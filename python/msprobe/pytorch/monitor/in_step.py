"""Reads each parameter while the optimizer updates it, when it is in the cache of the processor anyway.

Read before and after the whole step, gradients, moments and parameters come from memory, which is the larger part of what a
monitor costs where a model does not fit into the cache. The optimizers of torch.optim go through a list of parameters one after
another where they have no kernel for all at once (on a CPU by default): the list that they are given here reads a parameter when
it is asked for it, and again when it is asked for the next one. What the optimizer computes is its own code on the same tensors.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from ... import _compat, _core
from ..._capture.log import logger
from .optimizers import OptimizerView

_LOOP = "_single_tensor_"
_OTHER_WAYS = ("foreach", "fused", "capturable", "differentiable")


class InStep:
    """The steps of one optimizer."""

    def __init__(self, view: OptimizerView, before: Callable, after: Callable, always: bool) -> None:
        """Does nothing until begin().

        Args:
            view: Of the optimizer.
            before: Called with a parameter right before its update, and whether the reader has taken what it takes.
            after: Called with them right after.
            always: Whether they are called also where the reader has taken it.
        """
        self._optimizer = view.optimizer
        self._module, self._name = _loop_of(view)
        self._knows = self._module is not None
        # Weak, because the collector does not look into what C++ holds.
        weak_before, weak_after = weakref.WeakMethod(before), weakref.WeakMethod(after)
        self.visits = _core.StepVisits(lambda *a: weak_before()(*a), lambda *a: weak_after()(*a), always)

    def begin(self, parameters: list, reader: Any) -> bool:
        """Right before a step.

        Args:
            parameters: That are read.
            reader: A ParameterReader, which reads them.

        Returns:
            Whether they are read in the step; if not they have to be read now.
        """
        self.end()
        if not self._knows or not self._goes_one_by_one():
            return False
        # The optimizer makes its states in its first step, before the loop: as they are now.
        if not self.visits.begin(parameters, reader, self._optimizer.state or {}):
            return False
        _loop(self._module, self._name).add(self)
        return True

    def end(self) -> None:
        """After a step; also when it failed."""
        if self._name:
            _loop(self._module, self._name).remove(self)

    def close(self) -> None:
        """Ends for good."""
        self.end()
        self.visits.clear()

    def left(self) -> tuple:
        """Parameters that the step did not visit: those it left alone, and those it changed in another way."""
        alone, changed = self.visits.left()
        if changed:
            self._knows = False  # from now on all are read before the step
            logger.warning(
                "monitor: %s has changed %d parameters in a way of its own: what they were before this step was not read",
                type(self._optimizer).__name__,
                len(changed),
            )
        return alone, changed

    def _goes_one_by_one(self) -> bool:
        if _compat.is_compiling():
            return False
        return not any(group.get(way) for group in self._optimizer.param_groups for way in _OTHER_WAYS)


class _Loop:
    """A function of PyTorch that goes through parameters, and the monitors whose steps are open."""

    def __init__(self, module: Any, name: str) -> None:
        self._module, self._name = module, name
        self._watches: list = []
        self._original: Optional[Callable] = None

    def add(self, watch: InStep) -> None:
        if not self._watches:
            original = self._original = getattr(self._module, self._name)

            def loop(parameters: list, *rest: Any, **named: Any) -> Any:
                return original(_ReadList(parameters, list(self._watches)), *rest, **named)

            setattr(self._module, self._name, loop)
        self._watches.append(watch)

    def remove(self, watch: InStep) -> None:
        if watch in self._watches:
            self._watches.remove(watch)
            if not self._watches:
                setattr(self._module, self._name, self._original)


@functools.cache
def _loop(module: Any, name: str) -> _Loop:
    return _Loop(module, name)


class _ReadList(list):
    """Reads what is taken from it, before and after."""

    def __init__(self, parameters: list, watches: list) -> None:
        super().__init__(parameters)
        self._visits = [watch.visits for watch in watches]

    def __iter__(self) -> Iterator:
        return _core.VisitedItems(super().__iter__(), self._visits)


def _loop_of(view: OptimizerView) -> tuple:
    """(module, name) of the function that goes through the parameters; (None, "") for other optimizers."""
    optimizer = view.optimizer
    if type(view) is not OptimizerView or not isinstance(optimizer, torch.optim.Optimizer):
        return None, ""
    # PyTorch wraps the method of the class; the wrapper has the name of the module that defines it.
    home = str(getattr(type(optimizer).step, "__module__", ""))
    module = sys.modules.get(home)
    names = [name for name in vars(module) if name.startswith(_LOOP)] if module is not None else []
    if not home.startswith("torch.optim.") or len(names) != 1:
        return None, ""
    return module, names[0]

"""What is read around a step of the optimizer: gradients, moments, parameters and their updates."""

from collections.abc import Callable
from typing import Any, Optional

from .in_step import InStep
from .learning_rates import LearningRates
from .optimizers import OptimizerView
from .parameters import ParameterWatch
from .updates import Updates
from .values import Values


class StepReader:
    """Reads parameters while the optimizer updates them where that can be, and around the whole step elsewhere."""

    def __init__(
        self,
        view: OptimizerView,
        parameters: ParameterWatch,
        updates: Optional[Updates],
        values: Values,
        guard: Callable,
        rates: Optional[LearningRates] = None,
    ) -> None:
        """Does nothing until before().

        Args:
            view: Of the optimizer.
            parameters: That are read.
            updates: Takes what the step changes, if that is wanted.
            values: Takes tensors.
            guard: Runs what must not stop the training.
            rates: Takes the learning rates, if that is wanted.
        """
        self._rates = rates
        self._parameters, self._updates, self._values, self._guard = parameters, updates, values, guard
        self._in_step = InStep(view, self._reach, self._leave, updates is not None)
        self._one_by_one = False  # in the open step
        self._native: Any = None  # reads parameters that are like most
        self._all = list(parameters.names)

    def before(self, step: int) -> None:
        """Right before a step."""
        watch = self._parameters
        if self._rates is not None:
            self._rates.take()
        if not watch.has_series:
            return
        watch.begin_step(step)
        if self._native is None:
            self._native = watch.native_reader()
        self._one_by_one = self._in_step.begin(self._all, self._native)
        if self._one_by_one:
            return
        watch.take_before()
        if self._updates is not None:
            for parameter, name in watch.names.items():
                self._updates.keep(watch.weight(parameter), name)

    def after(self) -> None:
        """Right after it."""
        watch = self._parameters
        if not watch.has_series:
            return
        alone: list = []
        rest = list(watch.names)
        if self._one_by_one:
            self._in_step.end()
            alone, rest = self._in_step.left()
        for parameter in alone:
            self._read_before(parameter, False)
            self._read_after(parameter, False)
        watch.take_after(rest)
        if self._updates is not None:
            for parameter in rest:
                self._take_update(parameter)

    def remove(self) -> None:
        """Ends; the optimizer is as it was."""
        self._in_step.close()

    def _reach(self, parameter: Any, taken: bool) -> None:
        self._guard(self._read_before, parameter, taken)

    def _leave(self, parameter: Any, taken: bool) -> None:
        self._guard(self._read_after, parameter, taken)

    def _read_before(self, parameter: Any, taken: bool) -> None:
        name = self._parameters.names[parameter]
        if not taken:
            numbers: list = []
            tensors: list = []
            self._parameters.list_before(parameter, name, numbers, tensors)
            self._values.take(numbers, tensors)
        if self._updates is not None:
            self._updates.keep(self._parameters.weight(parameter), name)

    def _read_after(self, parameter: Any, taken: bool) -> None:
        if not taken:
            self._parameters.take_after((parameter,))
        if self._updates is not None:
            self._take_update(parameter)

    def _take_update(self, parameter: Any) -> None:
        name = self._parameters.names[parameter]
        self._updates.take(self._parameters.weight(parameter), name, self._parameters.series("param_update", name))

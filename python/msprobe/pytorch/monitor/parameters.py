"""Parameters of the monitored model: their values, their gradients when the optimizer uses them, its moments."""

from collections.abc import Callable
from typing import Any

import torch

from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from . import names
from .optimizers import OptimizerView, gradient_of
from .updates import sign_agreement
from .values import Values, local_part

_TAGS = {
    "grad_reduced": "post_grad",
    "exp_avg": "exp_avg",
    "exp_avg_sq": "exp_avg_sq",
    "param_origin": "param_origin",
    "param_updated": "param_updated",
    "param_update": "param_update",
}


class ParameterWatch:
    """Knows the parameters by name, and reads them and what belongs to them around a step."""

    def __init__(
        self,
        config: MonitorConfig,
        board: Board,
        values: Values,
        view: OptimizerView,
        main_grad: bool,
        is_duplicate: Callable[[Any], bool],
    ) -> None:
        """Knows none yet.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Takes tensors.
            view: Of the optimizer.
            main_grad: Whether the trainer keeps gradients in main_grad.
            is_duplicate: Whether another rank writes the reduced gradient of a parameter.
        """
        self._config, self._board, self._values, self._view = config, board, values, view
        self._main_grad = main_grad
        self._is_duplicate = is_duplicate
        self.names: dict = {}  # parameter -> name
        self._duplicates: set = set()
        self._numbers: dict = {}  # (table, name) -> series

    def add(self, models: list) -> None:
        """Names the parameters that are trained, and says which series they will have."""
        taken: set = set()
        for chunk, model in enumerate(models):
            prefix = f"{chunk}:"
            for path, parameter in model.named_parameters():
                if not parameter.requires_grad or not names.is_target_parameter(self._config, path, prefix):
                    continue
                name = prefix + names.squash(path, self._config.squash_name)
                if name in taken:
                    name = prefix + path
                taken.add(name)
                self.names[parameter] = name
                if self._is_duplicate(parameter):
                    self._duplicates.add(name)
        self._expect()

    def _expect(self) -> None:
        config = self._config
        wanted = {
            "grad_unreduced": config.wg_distribution,
            "grad_reduced": config.wg_distribution,
            "exp_avg": config.mv_distribution,
            "exp_avg_sq": config.mv_distribution,
            "param_origin": config.param_distribution,
            "param_updated": config.param_distribution,
            "param_update": config.ur_distribution,
        }
        for table in (t for t, on in wanted.items() if on and not config.print_struct):
            for parameter, name in self.names.items():
                if table == "grad_reduced" and name in self._duplicates:
                    continue
                if local_part(parameter.detach()).numel() == 0:
                    continue
                self._board.expect(table, name)
                if table in _TAGS:
                    self.series(table, name)

    def series(self, table: str, name: str) -> int:
        """The number of a series of a parameter."""
        number = self._numbers.get((table, name))
        if number is None:
            number = self._numbers[table, name] = self._board.series(table, name, _TAGS.get(table, "mg_direction"))
        return number

    # ---- around a step

    def take_before(self, step: int) -> None:
        """Right before the optimizer steps."""
        config = self._config
        numbers: list = []
        tensors: list = []
        self._view.refresh()
        if config.wg_distribution:
            self._list_gradients(numbers, tensors)
        if config.mv_distribution or config.mg_direction:
            self._list_moments(step, numbers, tensors)
        if config.param_distribution:
            self._list_parameters("param_origin", numbers, tensors)
        self._values.take(numbers, tensors)

    def take_after(self) -> None:
        """Right after it."""
        if self._config.param_distribution:
            numbers: list = []
            tensors: list = []
            self._list_parameters("param_updated", numbers, tensors)
            self._values.take(numbers, tensors)

    def take_gradients(self) -> None:
        """The gradients as they are now, for who asks before the step."""
        numbers: list = []
        tensors: list = []
        self._view.refresh()
        self._list_gradients(numbers, tensors)
        self._values.take(numbers, tensors)
        self._values.flush()

    def take_unreduced(self, name: str, micro: int, gradient: Any, tag: str) -> None:
        """A gradient before the reduction."""
        key = ("grad_unreduced", name, micro)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._board.series("grad_unreduced", name, tag, micro, of=name)
        self._values.take([number], [gradient])

    def _list_gradients(self, numbers: list, tensors: list) -> None:
        first = True
        for parameter, name in self.names.items():
            if name in self._duplicates:
                continue
            gradient = self._view.gradient(name, parameter, self._main_grad, first)
            if gradient is None:
                continue
            first = False
            numbers.append(self.series("grad_reduced", name))
            tensors.append(gradient)

    def _list_moments(self, step: int, numbers: list, tensors: list) -> None:
        states = self._view.states()
        if not states:  # it has not stepped yet
            self._board.excuse("exp_avg")
            self._board.excuse("exp_avg_sq")
        for table, position in (("exp_avg", 0), ("exp_avg_sq", 1)):
            for parameter, name in self.names.items() if self._config.mv_distribution else ():
                moment = self._view.moments(parameter, states)[position]
                if moment is not None:
                    numbers.append(self.series(table, name))
                    tensors.append(moment)
                elif self._view.is_sharded and states:  # another rank has it
                    self._board.unexpect(table, name)
        if not self._config.mg_direction:
            return
        for parameter, name in self.names.items():
            gradient = gradient_of(parameter, self._main_grad)
            moment = self._view.moments(parameter, states)[0]
            if gradient is None or (moment is None and step > 0):
                continue
            numbers.append(self.series("other", name))
            tensors.append(
                sign_agreement(local_part(gradient), local_part(moment)) if moment is not None else torch.tensor(1.0)
            )

    def _list_parameters(self, table: str, numbers: list, tensors: list) -> None:
        for parameter, name in self.names.items():
            if parameter.numel() != 0:
                numbers.append(self.series(table, name))
                tensors.append(parameter)

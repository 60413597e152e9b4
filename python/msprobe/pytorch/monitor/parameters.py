"""Parameters of the monitored model: their values, their gradients when the optimizer uses them, its moments."""

from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch

from ... import _core
from ..._capture.log import logger
from ..._monitor import names
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
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
        self._states: list = []
        self._step, self._first = 0, True
        self._has_stepped = self._knows_moments = False

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
                if local_part(self._view.weight(parameter).detach()).numel() == 0:
                    continue
                self._board.expect(table, name)
                if table in _TAGS:
                    self.series(table, name)

    def weight(self, parameter: Any) -> Any:
        """What this rank has of a parameter between steps."""
        return self._view.weight(parameter)

    def series(self, table: str, name: str) -> int:
        """The number of a series of a parameter."""
        number = self._numbers.get((table, name))
        if number is None:
            number = self._numbers[table, name] = self._board.series(table, name, _TAGS.get(table, "mg_direction"))
        return number

    def native_reader(self) -> Any:
        """What reads parameters without Python; it refuses those that it cannot read."""
        config = self._config
        reader = _core.ParameterReader(self._board.journal, self._values.threads)
        for parameter, name in self.names.items():
            special = config.mg_direction or hasattr(parameter, "main_grad")
            if special or parameter.numel() == 0:
                continue
            wanted = (
                ("grad_reduced", config.wg_distribution and name not in self._duplicates),
                ("exp_avg", config.mv_distribution),
                ("exp_avg_sq", config.mv_distribution),
                ("param_origin", config.param_distribution),
                ("param_updated", config.param_distribution),
            )
            reader.add(parameter, *(self.series(table, name) if on else -1 for table, on in wanted))
        return reader

    # ---- around a step

    @property
    def has_series(self) -> bool:
        """Whether anything is read of parameters around a step."""
        config = self._config
        moments = config.mv_distribution or config.mg_direction
        return config.wg_distribution or moments or config.param_distribution or config.ur_distribution

    def begin_step(self, step: int) -> None:
        """The optimizer is about to step."""
        self._view.refresh()
        self._step, self._first = step, True
        self._states = self._view.states()
        if self._has_stepped and self._config.mv_distribution and not self._knows_moments:
            self._look_for_moments()
        self._has_stepped = True
        if not self._states:  # it has not stepped yet
            self._board.excuse("exp_avg")
            self._board.excuse("exp_avg_sq")

    def _look_for_moments(self) -> None:
        """Once: an optimizer that keeps none of a kind, of any parameter, has no series of that kind."""
        self._knows_moments = True
        found = [self._view.moments(parameter, self._states) for parameter in self.names]
        if self._view.is_sharded or len(self._view.parts) > 1:
            return
        gone = [t for i, t in enumerate(("exp_avg", "exp_avg_sq")) if all(pair[i] is None for pair in found)]
        if gone:
            self._board.leave_out(gone)
            kind = type(self._view.optimizer).__name__
            logger.info("monitor: %s keeps no %s: these series are left out", kind, " and no ".join(gone))

    def take_before(self) -> None:
        """Right before the optimizer steps, of all parameters."""
        numbers: list = []
        tensors: list = []
        for parameter, name in self.names.items():
            self.list_before(parameter, name, numbers, tensors)
        self._values.take(numbers, tensors)

    def take_after(self, parameters: Iterable) -> None:
        """Right after it, of these."""
        numbers: list = []
        tensors: list = []
        for parameter in parameters:
            self.list_after(parameter, self.names[parameter], numbers, tensors)
        self._values.take(numbers, tensors)

    def list_before(self, parameter: Any, name: str, numbers: list, tensors: list) -> None:
        """Appends what is read of a parameter before its update."""
        config = self._config
        if config.wg_distribution and name not in self._duplicates:
            gradient = self._view.gradient(name, parameter, self._main_grad, self._first)
            if gradient is not None:
                self._first = False
                numbers.append(self.series("grad_reduced", name))
                tensors.append(gradient)
            elif self._view.elsewhere(parameter):
                self._board.unexpect("grad_reduced", name)
        if config.mv_distribution or config.mg_direction:
            self._list_moments(parameter, name, numbers, tensors)
        weight = self._view.weight(parameter)
        if config.param_distribution and weight.numel() != 0:
            numbers.append(self.series("param_origin", name))
            tensors.append(weight)

    def list_after(self, parameter: Any, name: str, numbers: list, tensors: list) -> None:
        """Appends what is read of a parameter after its update."""
        weight = self._view.weight(parameter)
        if self._config.param_distribution and weight.numel() != 0:
            numbers.append(self.series("param_updated", name))
            tensors.append(weight)

    def take_gradients(self) -> None:
        """The gradients as they are now, for who asks before the step."""
        numbers: list = []
        tensors: list = []
        self._view.refresh()
        first = True
        for parameter, name in self.names.items():
            gradient = None
            if name not in self._duplicates:
                gradient = self._view.gradient(name, parameter, self._main_grad, first)
            if gradient is not None:
                first = False
                numbers.append(self.series("grad_reduced", name))
                tensors.append(gradient)
        self._values.take(numbers, tensors)
        self._values.flush()

    def take_unreduced(self, name: str, micro: int, gradient: Any, tag: str) -> None:
        """A gradient before the reduction."""
        self._values.take([self._unreduced(name, micro, tag)], [gradient])

    def gradient_hook(self, name: str, passes: int, take: Callable[[str, int, Any, str], None]) -> Optional[Any]:
        """A hook that takes the gradient of a parameter before the reduction; None: Python has to."""
        number = self._unreduced(name, -1, "acc_grad")
        return self._board.gradient_hook(
            number, passes, lambda gradient: take(name, -1, gradient, "acc_grad"), self._values.threads
        )

    def _unreduced(self, name: str, micro: int, tag: str) -> int:
        key = ("grad_unreduced", name, micro)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._board.series("grad_unreduced", name, tag, micro, of=name)
        return number

    def _list_moments(self, parameter: Any, name: str, numbers: list, tensors: list) -> None:
        moments = self._view.moments(parameter, self._states)
        if self._config.mv_distribution:
            for table, moment in zip(("exp_avg", "exp_avg_sq"), moments):
                if moment is not None:
                    numbers.append(self.series(table, name))
                    tensors.append(moment)
                elif self._view.is_sharded and self._states:  # another rank has it
                    self._board.unexpect(table, name)
        if not self._config.mg_direction:
            return
        gradient, moment = gradient_of(parameter, self._main_grad), moments[0]
        if gradient is None or (moment is None and self._step > 0):
            return
        numbers.append(self.series("other", name))
        tensors.append(
            sign_agreement(local_part(gradient), local_part(moment)) if moment is not None else torch.tensor(1.0)
        )

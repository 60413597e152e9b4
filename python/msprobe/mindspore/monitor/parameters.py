"""Parameters of a MindSpore optimizer: their gradients, which it is called with, its moments, their updates."""

from collections.abc import Callable
from typing import Any, Optional

import numpy as np
from mindspore import Tensor

from ..._monitor import names
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig

# How optimizers of mindspore.nn, and of mindspore.mint and mindspore.experimental, call their moments.
_MOMENTS = (("moment1", "moment2"), ("moments1", "moments2"), ("exp_avg", "exp_avg_sq"), ("moments", None))
_TAGS = {"grad_reduced": "post_grad", "other": "mg_direction"}


class ParameterWatch:
    """Reads them right before and right after the optimizer is called."""

    def __init__(self, config: MonitorConfig, board: Board, model: list, optimizer: Any) -> None:
        """Names the parameters.

        Args:
            config: Of the monitor.
            board: Of its series.
            model: Cells.
            optimizer: A Cell whose `parameters` are in the order of the gradients that it is called with.
        """
        self._config, self._board, self._optimizer = config, board, optimizer
        self._parameters = list(optimizer.parameters)
        self._names = self._name(model)
        self._before: dict = {}
        self._numbers: dict = {}
        for table, wanted in (
            ("grad_reduced", config.wg_distribution),
            ("exp_avg", config.mv_distribution and self._moments()[0] is not None),
            ("exp_avg_sq", config.mv_distribution and self._moments()[1] is not None),
            ("param_origin", config.param_distribution),
            ("param_updated", config.param_distribution),
            ("param_update", config.ur_distribution),
            ("other", config.mg_direction and self._moments()[0] is not None),
        ):
            for name in self._names.values() if wanted else ():
                board.expect(table, name)

    def _name(self, model: list) -> dict:
        """Position among the parameters of the optimizer -> name."""
        found: dict = {}
        places = {id(p): i for i, p in enumerate(self._parameters)}
        taken: set = set()
        for chunk, cell in enumerate(model):
            prefix = f"{chunk}:"
            for path, parameter in cell.parameters_and_names():
                place = places.get(id(parameter))
                if place is None or place in found or not names.is_target_parameter(self._config, path, prefix):
                    continue
                name = prefix + names.squash(path, self._config.squash_name)
                found[place] = prefix + path if name in taken else name
                taken.add(found[place])
        return dict(sorted(found.items()))

    @property
    def is_empty(self) -> bool:
        """Whether the optimizer has no parameter of the model."""
        return not self._names

    def _moments(self) -> tuple:
        return moments_of(self._optimizer)

    def before(self, gradients: Any) -> None:
        """Right before the optimizer is called with these."""
        config = self._config
        rows = _Rows(self._series)
        gradients = gradients if isinstance(gradients, (list, tuple)) else ()
        first, second = self._moments()
        for place, name in self._names.items():
            parameter = self._parameters[place]
            if config.wg_distribution and place < len(gradients):
                rows.add("grad_reduced", name, gradients[place])
            if config.mv_distribution and first is not None:
                rows.add("exp_avg", name, first[place])
            if config.mv_distribution and second is not None:
                rows.add("exp_avg_sq", name, second[place])
            if config.mg_direction and first is not None and place < len(gradients):
                agreement = sign_agreement(gradients[place], first[place])
                if agreement is not None:
                    rows.add("other", name, agreement)
            if config.param_distribution:
                rows.add("param_origin", name, parameter)
            if config.ur_distribution:
                self._before[place] = _array(parameter)
        self._take(rows)

    def after(self) -> None:
        """Right after it."""
        rows = _Rows(self._series)
        for place, name in self._names.items():
            parameter = self._parameters[place]
            if self._config.param_distribution:
                rows.add("param_updated", name, parameter)
            before = self._before.pop(place, None)
            if before is not None:
                self._take_update(name, parameter, before)
        self._take(rows)

    def _take(self, rows: "_Rows") -> None:
        for i in self._board.take(rows.numbers, rows.tensors, 1):
            self._board.put(rows.numbers[i], [])

    def _take_update(self, name: str, parameter: Any, before: np.ndarray) -> None:
        change = (_array(parameter) - before).astype(np.float64)
        size = float(np.linalg.norm(before.astype(np.float64)))
        values = {
            "norm": lambda: float(np.linalg.norm(change)),
            "min": lambda: float(change.min()),
            "max": lambda: float(change.max()),
            "mean": lambda: float(change.mean()),
            "zeros": lambda: float((np.abs(change) < self._config.eps).mean()),
            "nans": lambda: int(np.isnan(change).sum()),
            "id": lambda: None,
            "shape": lambda: str(list(parameter.shape)),
            "dtype": lambda: str(parameter.dtype),
        }
        ratio = float(np.linalg.norm(change)) / size if size else None
        row = [values[op]() for op in self._config.ops] if change.size else []
        self._board.put(self._series("param_update", name), [*row, ratio] if row else [])

    def _series(self, table: str, name: str) -> int:
        number = self._numbers.get((table, name))
        if number is None:
            number = self._numbers[table, name] = self._board.series(table, name, _TAGS.get(table, table))
        return number


def moments_of(optimizer: Any) -> tuple:
    """(first, second) moments of an optimizer, each in the order of its parameters, or None."""
    for first, second in _MOMENTS:
        moments = getattr(optimizer, first, None)
        if isinstance(moments, (list, tuple)) and len(moments) == len(optimizer.parameters):
            return moments, getattr(optimizer, second, None) if second else None
    return None, None


class _Rows:
    """Series and their tensors."""

    def __init__(self, series: Callable[[str, str], int]) -> None:
        self._series = series
        self.numbers: list = []
        self.tensors: list = []

    def add(self, table: str, name: str, tensor: Optional[Any]) -> None:
        if isinstance(tensor, Tensor):
            self.numbers.append(self._series(table, name))
            self.tensors.append(tensor)


def sign_agreement(gradient: Any, moment: Any) -> Optional[Tensor]:
    """The share of elements whose gradient and first moment have one sign; elements that are zero count half."""
    if not isinstance(gradient, Tensor) or not isinstance(moment, Tensor) or gradient.size != moment.size:
        return None
    product = np.sign(_array(gradient)).ravel() * np.sign(_array(moment)).ravel()
    return Tensor(np.float32((product.mean() + 1) / 2 if product.size else 1))


def _array(parameter: Any) -> np.ndarray:
    """A copy of its values; bfloat16, which NumPy does not have, as float32."""
    plain = parameter.float() if "BFloat16" in str(parameter.dtype) else parameter
    return np.array(plain.asnumpy())

"""The learning rate of each group of the optimizer, as it is when the optimizer steps."""

from typing import Any

import torch

from ..._monitor.board import Board
from .optimizers import OptimizerView
from .values import Values


class LearningRates:
    """Reads them right before a step."""

    def __init__(self, board: Board, values: Values, view: OptimizerView) -> None:
        """Reads nothing yet.

        Args:
            board: Of its series.
            values: Fetches rates that a device holds.
            view: Of the optimizer.
        """
        self._board, self._values, self._view = board, values, view

    def take(self) -> None:
        """Puts the rate of each group; groups of several optimizers are numbered on."""
        groups = [group for part in self._view.parts for group in getattr(part, "param_groups", None) or ()]
        for number, group in enumerate(groups):
            rate = group.get("lr") if isinstance(group, dict) else None
            if rate is not None:
                self._put(self._board.series("learning_rate", f"0:group{number}", "learning_rate"), rate)

    def _put(self, number: int, rate: Any) -> None:
        if isinstance(rate, torch.Tensor) and rate.device.type != "cpu":
            self._values.rows.add(rate.detach().clone(), lambda numbers: self._board.put(number, numbers))
        else:
            self._board.put(number, [float(rate)])

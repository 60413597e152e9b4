"""What a step changed: the update of each parameter, and how gradients and first moments agree."""

from typing import Any

import torch

from ..._monitor.board import Board
from .values import Values, local_part


class Updates:
    """Keeps parameters from before their update to after it: all of them, or each for itself where they are read one by one."""

    def __init__(self, board: Board, values: Values, ops: list) -> None:
        """Keeps nothing yet.

        Args:
            board: Of the series.
            values: Knows `eps`.
            ops: The statistics.
        """
        self._board, self._values, self._ops = board, values, ops
        self._before: dict = {}  # name -> copy
        self._spare: dict = {}  # (shape, type) -> memory for copies

    def keep(self, parameter: Any, name: str) -> None:
        """Copies a parameter, right before its update."""
        here = local_part(parameter.detach())
        if not here.numel():
            return
        spare = self._spare.get(_kind(here))
        self._before[name] = spare.pop().copy_(here) if spare else here.clone()

    def take(self, parameter: Any, name: str, series: int) -> None:
        """Takes the difference, right after it. The last column is ||update|| / ||parameter before||."""
        before = self._before.pop(name, None)
        if before is None:
            return
        here = local_part(parameter.detach())
        self._spare.setdefault(_kind(before), []).append(before)
        if before.shape != here.shape:
            return
        wide = torch.float64 if before.device.type == "cpu" else None
        norm = torch.linalg.vector_norm(before, dtype=wide)
        torch.sub(here, before, out=before)
        changed = torch.linalg.vector_norm(before, dtype=wide)
        ratio = float(changed / norm) if float(norm) else None
        self._board.put(series, [*_values(before, self._ops, changed, self._values), ratio])


def _kind(tensor: torch.Tensor) -> tuple:
    return tensor.shape, tensor.dtype, tensor.device


def _values(tensor: torch.Tensor, ops: list, norm: torch.Tensor, values: Values) -> list:
    functions = {
        "norm": lambda: float(norm),
        "min": lambda: float(tensor.min()),
        "max": lambda: float(tensor.max()),
        "mean": lambda: float(tensor.double().mean()) if tensor.device.type == "cpu" else float(tensor.mean()),
        "zeros": lambda: float((tensor.abs() < values.eps).sum()) / tensor.numel(),
        "nans": lambda: int(torch.isnan(tensor).sum()),
        "id": lambda: None,
        "shape": lambda: str(list(tensor.shape)),
        "dtype": lambda: str(tensor.dtype),
    }
    return [functions[op]() for op in ops]


def sign_agreement(gradient: Any, moment: Any) -> torch.Tensor:
    """The share of elements whose gradient and first moment have one sign; elements that are zero count half."""
    if moment.numel() == 0 or moment.numel() != gradient.numel():
        return torch.tensor(1.0)
    product = torch.sign(gradient.reshape(-1)) * torch.sign(moment.reshape(-1))
    return (product.sum() / moment.numel() + 1) / 2

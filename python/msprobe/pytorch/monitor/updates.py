"""What a step changed: the update of each parameter, and how gradients and first moments agree."""

from typing import Any

import torch

from ..._monitor.board import Board
from .values import Values, local_part


class Updates:
    """Keeps the parameters of before the step, which takes as much memory as they do."""

    def __init__(self) -> None:
        """Keeps nothing yet."""
        self._before: dict = {}  # name -> copy

    def keep(self, parameters: dict) -> None:
        """Copies the parameters, right before a step."""
        for parameter, name in parameters.items():
            here = local_part(parameter.detach())
            known = self._before.get(name)
            if known is not None and known.shape == here.shape and known.dtype == here.dtype:
                known.copy_(here)
            elif here.numel():
                self._before[name] = here.clone()

    def take(self, parameters: Any, board: Board, values: Values, ops: list) -> None:
        """Takes the differences, right after the step. The last column is ||update|| / ||parameter before||."""
        for parameter, name in parameters.names.items():
            before = self._before.get(name)
            here = local_part(parameter.detach())
            if before is None or before.shape != here.shape:
                continue
            norm = torch.linalg.vector_norm(before, dtype=torch.float64 if before.device.type == "cpu" else None)
            torch.sub(here, before, out=before)
            changed = torch.linalg.vector_norm(before, dtype=torch.float64 if before.device.type == "cpu" else None)
            ratio = float(changed / norm) if float(norm) else None
            board.put(parameters.series("param_update", name), [*_values(before, ops, changed, values), ratio])


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

"""What a step changed: the update of each parameter, and how gradients and first moments agree."""

import functools
from typing import Any

import torch

from ..._monitor.board import Board
from .device_rows import FORMULAS, wide_type
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
        wide = wide_type(before.device.type)
        norm = torch.linalg.vector_norm(before, dtype=wide)
        torch.sub(here, before, out=before)
        changed = torch.linalg.vector_norm(before, dtype=wide)
        parts = [norm, changed, *_parts(before, self._ops, self._values.eps)]
        numbers = torch.stack([part.to(wide) for part in parts])
        shape = (str(list(before.shape)), str(before.dtype))
        if before.device.type == "cpu":
            self._put(series, shape, numbers.tolist())
        else:
            self._values.rows.add(numbers, functools.partial(self._put, series, shape))

    def _put(self, series: int, shape: tuple, numbers: list) -> None:
        norm, changed, *parts = numbers
        known: dict = {"norm": changed, "shape": shape[0], "dtype": shape[1], **dict(zip(_computed(self._ops), parts))}
        if "nans" in known:
            known["nans"] = int(known["nans"])
        self._board.put(series, [*(known.get(op) for op in self._ops), changed / norm if norm else None])


def _kind(tensor: torch.Tensor) -> tuple:
    return tensor.shape, tensor.dtype, tensor.device


def _computed(ops: list) -> list:
    return [op for op in ops if op in FORMULAS and op != "norm"]


def _parts(tensor: torch.Tensor, ops: list, eps: float) -> list:
    wide = wide_type(tensor.device.type)
    return [FORMULAS[op](tensor, wide, eps) for op in _computed(ops)]


def sign_agreement(gradient: Any, moment: Any) -> torch.Tensor:
    """The share of elements whose gradient and first moment have one sign; elements that are zero count half."""
    if moment.numel() == 0 or moment.numel() != gradient.numel():
        return torch.tensor(1.0)
    product = torch.sign(gradient.reshape(-1)) * torch.sign(moment.reshape(-1))
    return (product.sum() / moment.numel() + 1) / 2

"""The two tables of a run, complete after every call."""

import csv
import os
from typing import Any

import torch

from ..._capture.files import open_new
from .standard import NOT_TENSORS, Judgement, judge

RESULT_COLUMNS = ("API name", "Forward Test Success", "Backward Test Success", "Message")
DETAIL_COLUMNS = (
    "Npu Name",
    "Bench Dtype",
    "NPU Dtype",
    "Shape",
    "error_balance",
    "max_abs_diff",
    "max_abs_idx",
    "max_rel_diff",
    "max_rel_idx",
    "eb_thd",
    "error_thd",
    "Status",
    "Message",
)
_NO_BACKWARD = "Nan"  # backward operators are calls of their own


def _is_plain() -> bool:
    """Whether the layout is that of mindstudio-probe to the letter: no header, and no Message in the first table."""
    return os.environ.get("MSPROBE_PLAIN", "") not in ("", "0")


class _Table:
    """A csv file of rows that are on disk when add() returns."""

    def __init__(self, path: str, columns: tuple) -> None:
        self._path = path
        os.close(open_new(path))
        if not _is_plain():
            self.add([columns])

    def add(self, rows: list) -> None:
        with open(self._path, "a", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(rows)


class Tables:
    """accuracy_checking_result_{time}.csv, a row for each call, and accuracy_checking_details_{time}.csv, one for each result."""

    def __init__(self, directory: str, time: str) -> None:
        """Creates both.

        Raises:
            OSError: One cannot be created.
        """
        self._result = _Table(os.path.join(directory, f"accuracy_checking_result_{time}.csv"), RESULT_COLUMNS)
        self._details = _Table(os.path.join(directory, f"accuracy_checking_details_{time}.csv"), DETAIL_COLUMNS)

    def add(self, name: str, ours: list, truth: list) -> bool:
        """Judges a call.

        Args:
            name: Its name, `tanh_1_output`.
            ours: What it computed, on the CPU.
            truth: The references.

        Returns:
            Whether it passes.

        Raises:
            OSError: The tables cannot be written.
        """
        rows, passes = [], len(ours) == len(truth)
        for index, (result, reference) in enumerate(zip(ours, truth)):
            if index and _has_no_reference(result, reference):
                continue
            found = _judged(result, reference)
            rows.append([f"{name}.forward.output.{index}", *_cells(result, reference, found)])
            passes = passes and found.passes
        self._details.add(rows)
        self._result.add([(name, passes, _NO_BACKWARD) if _is_plain() else (name, passes, _NO_BACKWARD, "")])
        return passes


def _has_no_reference(result: Any, reference: Any) -> bool:
    """Whether a side result is one that only kernels of the device have (the reserve of cudnn), or that is left out."""
    tensors = isinstance(result, torch.Tensor) and isinstance(reference, torch.Tensor)
    return (tensors and result.numel() > 0 and reference.numel() == 0) or (result is None and reference is None)


def _judged(result: Any, reference: Any) -> Judgement:
    if isinstance(result, torch.Tensor) and isinstance(reference, torch.Tensor):
        return judge(result, reference)
    if isinstance(result, torch.Tensor) or isinstance(reference, torch.Tensor):
        return Judgement(False, NOT_TENSORS)
    both_nan = result != result and reference != reference
    return Judgement(bool(both_nan or result == reference))


def _cells(result: Any, reference: Any, found: Judgement) -> list:
    dtypes = [value.dtype if isinstance(value, torch.Tensor) else type(value) for value in (reference, result)]
    cells = [
        *map(str, dtypes),
        tuple(result.shape) if isinstance(result, torch.Tensor) else None,
        found.error_balance,
        found.max_abs,
        found.max_abs_index,
        found.max_rel,
        found.max_rel_index,
        found.balance_limit,
        found.limit,
        found.passes,
        found.message,
    ]
    return [f"{cell:.14f}" if isinstance(cell, float) else cell for cell in cells]

"""What PrecisionChecker finds, and its table."""

import csv
import math
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from ... import _compat

COLUMNS = "module_name check_type tensor_index status max_abs_diff mean_abs_diff max_rel_diff shape note".split()
ATOL, RTOL = 1e-4, 1e-3
PARTS = ("fwd_input", "fwd_output", "grad_input", "grad_output")
IGNORED = "IGNORED"


@dataclass
class TensorDiff:
    """How far two tensors are apart.

    Attributes:
        max_abs: Largest difference.
        mean_abs: Mean difference.
        max_rel: Largest difference relative to the eager element, plus 1e-8.
        allclose: Whether every difference is at most 1e-4 + 1e-3 of the compiled element.
        shape: The shape; a pair of shapes when they differ.
    """

    max_abs: float
    mean_abs: float
    max_rel: float
    allclose: bool
    shape: tuple


@dataclass
class ModuleDiff:
    """The tensors of a module; None for those that were not compared. A `note` says why there are none."""

    name: str
    fwd_input: Optional[list[TensorDiff]] = None
    fwd_output: Optional[list[TensorDiff]] = None
    grad_input: Optional[list[TensorDiff]] = None
    grad_output: Optional[list[TensorDiff]] = None
    note: str = ""

    @property
    def is_left_out(self) -> bool:
        """Whether the note is no finding."""
        return self.note == IGNORED or self.note.startswith("SKIP")


@dataclass
class CompareResult:
    """Eager against compiled. `loss_eager` is NaN where only the compiled model ran."""

    loss_eager: float
    loss_compiled: float
    diffs: list[ModuleDiff] = field(default_factory=list)
    cast_dtype: Optional[torch.dtype] = None

    @property
    def loss_diff(self) -> float:
        """Difference of the losses; NaN where only the compiled model ran."""
        return abs(self.loss_eager - self.loss_compiled)

    @property
    def all_pass(self) -> bool:
        """Whether every tensor that was compared is close."""
        tensors = (
            d for diff in self.diffs if not diff.is_left_out for part in PARTS for d in getattr(diff, part) or ()
        )
        return all(tensor.allclose for tensor in tensors)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Lists the tensors of a value in order."""
    return [leaf for leaf in _compat.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def diff_of(eager: torch.Tensor, compiled: torch.Tensor) -> TensorDiff:
    """Compares two tensors in float32 on the CPU."""
    a, b = eager.detach().float().cpu(), compiled.detach().float().cpu()
    if a.shape != b.shape:
        return TensorDiff(math.inf, math.inf, math.inf, False, (tuple(a.shape), tuple(b.shape)))
    if a.numel() == 0:
        return TensorDiff(0.0, 0.0, 0.0, True, tuple(a.shape))
    apart = (a - b).abs()
    relative = apart / (a.abs() + 1e-8)
    close = torch.allclose(a, b, atol=ATOL, rtol=RTOL)
    return TensorDiff(apart.max().item(), apart.mean().item(), relative.max().item(), close, tuple(a.shape))


def diffs_of(eager: Any, compiled: Any) -> Optional[list[TensorDiff]]:
    """Compares the tensors of two values one by one; None without any."""
    pairs = zip(tensors_of(eager), tensors_of(compiled))
    return [diff_of(a, b) for a, b in pairs] or None


def rows_of(result: CompareResult) -> list[list]:
    """Returns the rows of the table below its header."""
    status = "PASS" if result.all_pass else "FAIL"
    compiled = f"compiled={result.loss_compiled:.6f}"
    if math.isnan(result.loss_eager):
        rows = [["LOSS", "loss", 0, status, "N/A", "N/A", "N/A", compiled, "single_pass mode"]]
    else:
        shown = f"eager={result.loss_eager:.6f} {compiled}"
        rows = [["LOSS", "loss", 0, status, f"{result.loss_diff:.6e}", "N/A", "N/A", shown, ""]]
    for diff in result.diffs:
        if diff.note:
            rows.append([diff.name, "note", 0, "SKIP" if diff.is_left_out else "WARN", "", "", "", "", diff.note])
            continue
        for part in PARTS:
            for index, tensor in enumerate(getattr(diff, part) or ()):
                figures = [f"{value:.6e}" for value in (tensor.max_abs, tensor.mean_abs, tensor.max_rel)]
                passed = "PASS" if tensor.allclose else "FAIL"
                rows.append([diff.name, part, index, passed, *figures, str(tensor.shape), ""])
    return rows


def write_csv(result: CompareResult, path: str) -> None:
    """Writes the table."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows_of(result)])

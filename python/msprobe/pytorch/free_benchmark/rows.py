"""free_benchmark.csv: one row for each result that is not consistent."""

import csv
import os
from typing import Any

import torch

from .ratio import Difference
from .settings import Settings

COLUMNS = ("rank", "pert_mode", "stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index")


class Rows:
    """The file of one step."""

    def __init__(self, directory: str, settings: Settings, step: int) -> None:
        """Writes nothing yet: a step in which all is consistent has no file."""
        self._path = os.path.join(directory, "free_benchmark.csv")
        self._settings, self._step = settings, step
        self.count = 0

    def add(self, name: str, difference: Difference) -> None:
        """Appends a row.

        Args:
            name: Name of the call, `Functional.linear.0.forward`.
            difference: One of its results.

        Raises:
            OSError: The file cannot be written.
        """
        result = difference.result
        tensor = result if isinstance(result, torch.Tensor) else None
        ratio = difference.ratio
        row = (
            _rank(),
            self._settings.pert_mode,
            self._settings.fuzz_stage,
            self._step,
            name,
            ratio - 1 if isinstance(ratio, float) else ratio,
            tensor.dtype if tensor is not None else None,
            tensor.shape if tensor is not None else None,
            difference.index,
        )
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        with open(self._path, "a" if self.count else "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if not self.count:
                writer.writerow(COLUMNS)
            writer.writerow(row)
        self.count += 1


def _rank() -> Any:
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0

"""free_benchmark.csv: one row for each result that is not consistent."""

import csv
import fcntl
import io
import os
from typing import Any

from .limits import Difference
from .settings import Settings

COLUMNS = ("rank", "pert_mode", "stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index")
SHARED_COLUMNS = tuple("pert_type" if name == "pert_mode" else name for name in COLUMNS)  # as MindSpore's has been


class Rows:
    """The rows of one step."""

    def __init__(self, path: str, settings: Settings, step: int, rank: Any, shared: bool = False) -> None:
        """Writes nothing yet: when all is consistent there is no file. A shared file is of all steps and ranks, and goes on."""
        self.path, self._shared = path, shared
        self._settings, self._step, self._rank = settings, step, rank
        self.count = 0

    def add(self, name: str, difference: Difference, dtype: Any, shape: Any) -> None:
        """Appends a row, below the line of titles where the file is new.

        Args:
            name: Name of the call, `Functional.linear.0.forward`.
            difference: One of its results.
            dtype: That of this result; None if it is no tensor.
            shape: The same.

        Raises:
            OSError: The file cannot be written.
        """
        ratio = difference.ratio
        row = (
            self._rank,
            self._settings.pert_mode,
            self._settings.fuzz_stage,
            self._step,
            name,
            ratio - 1 if isinstance(ratio, float) else ratio,
            dtype,
            shape,
            difference.index,
        )
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "ab" if self.count or self._shared else "wb") as file:
            if self._shared:  # by ranks
                fcntl.flock(file, fcntl.LOCK_EX)
            lines = [row] if os.fstat(file.fileno()).st_size else [SHARED_COLUMNS if self._shared else COLUMNS, row]
            text = io.StringIO(newline="")
            csv.writer(text).writerows(lines)
            file.write(text.getvalue().encode("utf-8"))
        self.count += 1

"""The files of TrainerMonitorV2: {output_dir}/rank_{r}/{monitor}_step{first}-{last}.csv."""

import csv
import io
import os
from collections.abc import Iterable
from typing import Any, Optional

from .. import _core
from .._capture.files import make_directory, open_new
from .._capture.log import logger
from .v2_config import V2Config


class V2Files:
    """The rows of all monitors of one process. They are written in the order in which they arrived."""

    eps = -1.0

    def __init__(self, config: V2Config, rank: int) -> None:
        """Makes the directory.

        Args:
            config: What is wanted.
            rank: Of this process.

        Raises:
            ValueError: The directory cannot be written.
        """
        self._config = config
        self._directory = os.path.join(config.output_dir, f"rank_{rank}")
        self._journal = _core.MonitorJournal(self._directory, 1e-8, 6, 1, False, False, [])
        self._tables = {k: self._journal.add_table(k, one.ops, True, False) for k, one in config.monitors.items()}
        self._numbers: dict = {}  # (kind, name, scope, how often before in this step) -> series
        self._rows: dict = {}  # (kind, name of the series, how often) -> (name, scope, micro step)
        self._counts: dict = {}
        self._failed = False

    def number(self, kind: str, name: str, scope: str, micro: Optional[int] = None) -> int:
        """The series of one more row of this name in the step."""
        again = self._counts.get((kind, name, scope), 0)
        self._counts[kind, name, scope] = again + 1
        return self.number_at(kind, name, scope, again, micro)

    def number_at(self, kind: str, name: str, scope: str, again: int, micro: Optional[int] = None) -> int:
        """The series of a row that was there `again` times before in the step."""
        key = (kind, name, scope, again)
        number = self._numbers.get(key)
        if number is None:
            full = f"{name}|{scope}"
            number = self._numbers[key] = self._journal.add_series(self._tables[kind], 0, full, again, 0, full)
            self._rows[kind, full, again] = (name, scope, micro)
        return number

    @property
    def journal(self) -> Any:
        """What the values go into."""
        return self._journal

    # ---- what Values asks of a board

    def columns(self, _: str) -> list:
        """The statistics that any of the files has."""
        return [op for one in self._config.monitors.values() for op in one.ops]

    def take(self, numbers: list, tensors: list, threads: int, often: bool = False) -> list:
        """As that of Board."""
        return self._journal.take(numbers, tensors, threads, often)

    def put(self, number: int, values: Iterable) -> None:
        """As that of Board."""
        self._journal.put(number, list(values))

    def put_summary(self, number: int, numbers: list, shape: list, dtype: str) -> None:
        """As that of Board."""
        self._journal.put_summary(number, numbers, shape, dtype)

    def set_shape(self, number: int, shape: str) -> None:
        """The files have no shapes."""

    # ---- steps

    def drop(self) -> None:
        """Forgets what arrived in this step."""
        self._counts.clear()
        self._journal.drop()

    def write(self, step: int) -> None:
        """Writes what arrived."""
        self._counts.clear()
        error = self._journal.write(step)["error"]
        for kind in self._tables:
            try:
                self._append(kind, step)
            except OSError as problem:
                error = error or str(problem)
        if error and not self._failed:
            logger.error("monitor: step %d is not complete: %s", step, error)
        self._failed = bool(error)

    def _append(self, kind: str, step: int) -> None:
        rows = []
        micro_steps = False
        for _, full, again, values in self._journal.rows(self._tables[kind]):
            name, scope, micro = self._rows[kind, full, again]
            prefix = name.partition(":")[0]
            stage = int(prefix) if ":" in name and prefix.isdigit() else "" if kind == "cc" else -1
            micro_steps |= micro is not None
            rows.append([stage, step, name, scope, *([micro] if micro is not None else []), *map(repr, values)])
        if not rows:
            return
        path = self._path(kind, step)
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if not os.path.exists(path):
            middle = ["micro_step"] if micro_steps else []
            writer.writerow(["vpp_stage", "step", "module_name", "scope", *middle, *self._config.monitors[kind].ops])
        writer.writerows(rows)
        make_directory(self._directory)
        if not os.path.exists(path):
            os.close(open_new(path))
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())

    def _path(self, kind: str, step: int) -> str:
        count, start = self._config.step_count_per_record, self._config.start_step
        first = start + (step - start) // count * count if step >= start else step
        return os.path.join(self._directory, f"{kind}_step{first}-{first + count - 1}.csv")

"""What ranks tell each other for the laws: lines that each appends to a file of its own, and that one of them reads.

Nothing is sent between ranks and nobody waits: a collective would change the order of those of the training, and hang with it.
"""

import json
import os
import time
from typing import Any, Optional

from .._capture.log import logger

FILE = "laws_of_rank.jsonl"
_MOST_OPEN = 64  # steps that wait for a rank
_MOST_LINE = 64 << 20
_PAUSE = 0.05


class RankLines:
    """The line of each checked step, of this rank and of the others."""

    def __init__(self, directory: str, rank: int, store: Any, serial: int, ranks: int) -> None:
        """Tells the others where this rank's file is.

        Args:
            directory: Of this rank.
            rank: Of this process.
            store: With set(), check() and get(): the one by which the ranks found each other.
            serial: Of the monitor in this process; the same on all ranks.
            ranks: How many there are.
        """
        self._path = os.path.join(directory, FILE)
        self._rank, self._ranks, self._store, self._serial = rank, ranks, store, serial
        self._places: dict = {rank: self._path}  # rank -> file
        self._read: dict = {}  # rank -> bytes
        self._open: dict = {}  # step -> {rank: line}
        self._spoilt = ""  # what stays wrong
        self._missing: dict = {}  # rank -> why nothing of it can be read yet
        store.set(self._key(rank), os.path.abspath(self._path))

    @property
    def why(self) -> str:
        """Why lines are missing; empty where all could be read."""
        return self._spoilt or next(iter(self._missing.values()), "")

    def _key(self, rank: int) -> str:
        return f"msprobe_laws_{self._serial}/{rank}"

    def tell(self, line: dict) -> None:
        """Appends a line; it has a step."""
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            if not self._spoilt:
                logger.warning("monitor: laws of several ranks are not checked: %s", error)
            self._spoilt = f"rank {self._rank} cannot write its lines"

    def complete(self, seconds: float = 0.0) -> list:
        """Steps of which all ranks have a line.

        Args:
            seconds: To wait for the last ones.

        Returns:
            {rank: line} of each step, in order.
        """
        until = time.monotonic() + seconds
        while True:
            self._look()
            whole = sorted(step for step, lines in self._open.items() if len(lines) == self._ranks)
            if not seconds or len(whole) == len(self._open) or time.monotonic() > until:
                break
            time.sleep(_PAUSE)
        found = [self._open.pop(step) for step in whole]
        for step in sorted(self._open)[:-_MOST_OPEN]:
            del self._open[step]
        return found

    def _look(self) -> None:
        for rank in range(self._ranks):
            path = self._places.get(rank) or self._find(rank)
            if path is not None:
                self._read_on(rank, path)

    def _find(self, rank: int) -> Optional[str]:
        try:
            if not self._store.check([self._key(rank)]):
                self._missing[rank] = f"rank {rank} has no monitor"
                return None
            path = self._store.get(self._key(rank)).decode()
        except RuntimeError as error:  # the store ends with the rank that holds it
            self._missing[rank] = f"the place of rank {rank} is not known: {error}"
            return None
        self._places[rank] = path
        return path

    def _read_on(self, rank: int, path: str) -> None:
        try:
            with open(path, "rb") as file:
                file.seek(self._read.get(rank, 0))
                text = file.read(_MOST_LINE)
        except OSError:
            self._missing[rank] = f"the file of rank {rank} is not there: {path}"
            return
        self._missing.pop(rank, None)  # it began later than this one
        whole = text[: text.rfind(b"\n") + 1]
        self._read[rank] = self._read.get(rank, 0) + len(whole)
        for part in whole.splitlines():
            try:
                line = json.loads(part)
            except (ValueError, RecursionError):
                line = None
            if not _is_line(line):
                self._spoilt = f"the file of rank {rank} has a line that is none"
                continue
            self._open.setdefault(line["step"], {})[rank] = line


def _is_line(line: Any) -> bool:
    """Tells whether something is a line of a rank, as far as its readers rely on it."""
    if not isinstance(line, dict) or not isinstance(line.get("step"), int):
        return False
    tables = [
        line.get("parameters"),
        line.get("parts"),
        *(line.get(key, {}) for key in ("gradients", "samples", "initial")),
    ]
    if not all(isinstance(table, dict) for table in tables) or not isinstance(line.get("batch", []), list):
        return False
    numbers = [*tables[0].values(), *tables[2].values(), *tables[4].values(), *line.get("batch", [])]
    if not all(isinstance(number, int) for number in numbers) or not all(
        isinstance(p, str) for p in tables[1].values()
    ):
        return False
    return all(_is_sample(sample) for sample in tables[3].values())


def _is_sample(sample: Any) -> bool:
    """Before and after the reduction, of equal length."""
    if not isinstance(sample, list) or len(sample) != 2 or not all(isinstance(part, list) for part in sample):
        return False
    return len(sample[0]) == len(sample[1]) and all(
        isinstance(value, (int, float)) for part in sample for value in part
    )

"""What a checker has acknowledged: files of frames, each of one run, rank and step. A shared folder holds the same files.

`{run}.rank{r}.step{s}.{first}.frames` is a file that is whole, `.open` one that is written. `{run}.rank{r}.done` has the number of
the last call that was judged, `{run}.rank{r}.end` what a training said at its end.
"""

import json
import os
import re
from typing import Any, Optional

from _online_wire import WireError, frame, frames_of

_FRAMES = re.compile(r"([0-9a-f]{16})\.rank(\d{1,6})\.step(\d{1,9})\.(\d{12})\.(frames|open)")
_END = re.compile(r"([0-9a-f]{16})\.rank(\d{1,6})\.(end|done)")
MOST_CALLS, MOST_BYTES = 400, 64 << 20  # of a file


class Segment:
    """A file that is written."""

    def __init__(self, folder: str, run: str, rank: int, step: int, first: int) -> None:
        """Makes it."""
        self.step, self.calls, self.bytes = step, 0, 0
        self._name = os.path.join(folder, f"{run}.rank{rank}.step{step}.{first:012d}.")
        self._file = open(self._name + "open", "xb")
        os.fchmod(self._file.fileno(), 0o640)

    def add(self, header: dict, bodies: tuple) -> None:
        """Appends a frame."""
        for part in frame(header, bodies):
            self.bytes += self._file.write(part)
        self.calls += 1

    @property
    def full(self) -> bool:
        """Whether another one is begun for what follows."""
        return self.calls >= MOST_CALLS or self.bytes >= MOST_BYTES

    def commit(self) -> None:
        """What was added is on disk when it returns, whatever becomes of the process."""
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """It is whole."""
        if not self._file.closed:
            self.commit()
            self._file.close()
            if self.calls:
                os.rename(self._name + "open", self._name + "frames")
            else:
                os.unlink(self._name + "open")


class Journal:
    """The directory."""

    def __init__(self, folder: str) -> None:
        """Makes it, with files that only this user and group read."""
        self.folder = folder
        os.makedirs(folder, mode=0o750, exist_ok=True)

    def adopt(self) -> None:
        """Takes over the files that a killed checker left open; what it had acknowledged is whole in them."""
        for name in os.listdir(self.folder):
            if name.endswith(".open") and _FRAMES.fullmatch(name):
                path = os.path.join(self.folder, name)
                os.rename(path, path[: -len("open")] + "frames")

    def bytes(self) -> int:
        """Returns the size of what waits."""
        total = 0
        for name in os.listdir(self.folder):
            if _FRAMES.fullmatch(name):
                try:
                    total += os.path.getsize(os.path.join(self.folder, name))
                except FileNotFoundError:
                    continue  # it was judged meanwhile
        return total

    def waiting(self) -> list:
        """Returns (path, run, rank, step) of the files that are whole, in the order in which they are judged."""
        found = []
        for name in os.listdir(self.folder):
            match = _FRAMES.fullmatch(name)
            if match and match[5] == "frames":
                path = os.path.join(self.folder, name)
                found.append((int(match[3]), match[1], int(match[2]), int(match[4]), path))
        return [(path, run, rank, step) for step, run, rank, _, path in sorted(found)]

    def last(self, run: str, rank: int) -> int:
        """Returns the number of the last call of a run and rank that is here or was judged; 0 without one."""
        last = self._read(run, rank, "done").get("seq", 0)
        for path, other, of_rank, _ in self.waiting():
            if (other, of_rank) == (run, rank):
                with open(path, "rb") as file:
                    for header, _ in frames_of(file):
                        last = max(last, header["seq"])
        return last

    def ended(self) -> dict:
        """Returns {(run, rank): what it said} of the trainings that are at their end."""
        ends = [match for name in os.listdir(self.folder) if (match := _END.fullmatch(name)) and match[3] == "end"]
        return {(match[1], int(match[2])): self._read(match[1], int(match[2]), "end") for match in ends}

    def note(self, run: str, rank: int, what: str, value: dict) -> None:
        """Writes a note, "end" or "done"."""
        path = os.path.join(self.folder, f"{run}.rank{rank}.{what}")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)

    def forget(self, path: str, run: str, rank: int, last: int) -> None:
        """A file is judged."""
        self.note(run, rank, "done", {"seq": max(last, self._read(run, rank, "done").get("seq", 0))})
        os.unlink(path)

    def clear(self) -> None:
        """All is judged: the next run begins with nothing."""
        for name in os.listdir(self.folder):
            if _END.fullmatch(name):
                os.unlink(os.path.join(self.folder, name))

    def _read(self, run: str, rank: int, what: str) -> dict[str, Any]:
        try:
            with open(os.path.join(self.folder, f"{run}.rank{rank}.{what}"), encoding="utf-8") as file:
                value: Optional[Any] = json.load(file)
        except (FileNotFoundError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


def check_greeting(header: dict) -> tuple[str, int]:
    """Returns the run and the rank of somebody who says hello.

    Args:
        header: The first frame of a connection.

    Raises:
        WireError: It is no greeting.
    """
    run, rank = header.get("run"), header.get("rank")
    if not isinstance(run, str) or not re.fullmatch(r"[0-9a-f]{16}", run):
        raise WireError("the first frame is no greeting")
    if type(rank) is not int or not 0 <= rank < 1_000_000:
        raise WireError("the greeting has no rank")
    return run, rank

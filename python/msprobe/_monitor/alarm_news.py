"""What a rank tells the others at an alarm, so that all of them dump the same steps."""

import json
import os
from typing import Protocol

from .._capture.files import make_directory, write_file

_DIRECTORY = "alarms"  # beside the directories of the ranks


class AlarmNews(Protocol):
    """Both ways have this; every rank calls exchange() after each monitored step."""

    def exchange(self, step: int, alarm: bool) -> list:
        """Gives the news of this rank and takes what came of others, without waiting for them.

        Args:
            step: The step that was judged.
            alarm: Whether an event began on this rank.

        Returns:
            (rank, step) of each alarm of another rank that is new here.
        """


class FileNews:
    """By a directory that all ranks see: a file for each alarm."""

    def __init__(self, base: str, rank: int) -> None:
        """What is there already is of an earlier run.

        Args:
            base: The output directory of all ranks.
            rank: Of this process.

        Raises:
            OSError: The directory cannot be made.
        """
        self._directory = os.path.join(base, _DIRECTORY)
        self._rank = rank
        make_directory(self._directory)
        self._known = set(os.listdir(self._directory))
        self._seen = -1  # time of the last change of the directory

    def exchange(self, step: int, alarm: bool) -> list:
        """See AlarmNews."""
        if alarm:
            text = json.dumps({"rank": self._rank, "step": step})
            write_file(os.path.join(self._directory, f"rank{self._rank}_step{step}.json"), text.encode())
        changed = os.stat(self._directory).st_mtime_ns
        if changed == self._seen:
            return []
        self._seen = changed
        names = {name for name in os.listdir(self._directory) if name.endswith(".json")}
        news = []
        for name in sorted(names - self._known):
            with open(os.path.join(self._directory, name), encoding="utf-8") as file:
                told = json.load(file)
            if told["rank"] != self._rank:
                news.append((told["rank"], told["step"]))
        self._known |= names
        return news

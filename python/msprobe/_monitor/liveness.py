"""Whether a monitor lives: the series that were asked for and gave nothing, the heartbeat, the report at the end."""

import json
import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Optional

from .._capture.files import write_file
from .._capture.log import logger

_SECONDS_BETWEEN_BEATS = 2.0
_MOST_SILENT = 1000  # series that a heartbeat names
_SHOWN = 3  # of a table, in a line of the log


class Liveness:
    """Knows the directory, and what each step said."""

    def __init__(self, directory: str, rank: int, interval: int) -> None:
        """Begins; the first heartbeat comes with the first step or report.

        Args:
            directory: Of this rank's files.
            rank: Of this process.
            interval: Steps between two that are monitored.
        """
        self.directory = directory
        self._rank = rank
        self._interval = interval
        self._started = time.time()
        self._last_beat = 0.0
        self._last_step: Optional[tuple] = None  # (step, time)
        self._seconds_per_step = 0.0
        self._said: Optional[list] = None  # what the last line said, but for the step
        self._ended = False
        self._broken = False
        self._writer: Optional[threading.Thread] = None
        self._rows = 0
        self._steps = 0
        self.laws: Callable[[], list] = list  # lines of those that broke
        self._command = _command()

    def step(self, step: int, rows: int, requested: int, silent: Callable[[], list]) -> None:
        """Says once what changed, and renews the heartbeat.

        Args:
            step: That was written.
            rows: How many series it has values of.
            requested: How many series were asked for.
            silent: Lists (table, name, why) of those without a value.
        """
        now = time.time()
        self._rows, self._steps = self._rows + rows, self._steps + 1
        if self._last_step is not None and step > self._last_step[0]:
            self._seconds_per_step = (now - self._last_step[1]) / (step - self._last_step[0])
        self._last_step = (step, now)
        missing = silent()
        if missing != self._said:
            if self._said is not None or missing:
                self._say(step, missing, requested)
            self._said = missing
        if now - self._last_beat >= _SECONDS_BETWEEN_BEATS:
            self.beat("running", step, missing, requested)

    def _say(self, step: int, missing: list, requested: int) -> None:
        if not missing:
            logger.info("monitor: step %d: all %d series have values again", step, requested)
            return
        logger.warning(
            "monitor: step %d: %d of %d series have no value: %s", step, len(missing), requested, summary_of(missing)
        )

    def beat(self, state: str, step: int, missing: list, requested: int) -> None:
        """Renews the heartbeat file."""
        self._last_beat = time.time()
        text = json.dumps(
            {
                "rank": self._rank,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "command": self._command,
                "state": state,
                "started": self._started,
                "beat": self._last_beat,
                "step": step,
                "interval": self._interval,
                "seconds_per_step": round(self._seconds_per_step, 6),
                "requested": requested,
                "reported": requested - len(missing),
                "laws": self.laws(),
                "silent": [f"{table} {name}: {why}" for table, name, why in missing[:_MOST_SILENT]],
            },
            indent=1,
        )
        # Beside the training: file systems may flush a file that replaces another, which takes as long as the disk is slow.
        if self._writer is not None:
            if state == "running" and self._writer.is_alive():
                return
            self._writer.join()
        self._writer = threading.Thread(target=self._write, args=(text,), daemon=True)
        self._writer.start()
        if state != "running":
            self._writer.join()

    def _write(self, text: str) -> None:
        try:
            write_file(os.path.join(self.directory, "heartbeat.json"), text.encode())
        except OSError as error:
            if not self._broken:
                logger.warning("monitor: the heartbeat cannot be written: %s", error)
            self._broken = True

    def end(self, state: str, step: int, missing: list, requested: int) -> None:
        """Writes the last heartbeat and says what the whole run had; once."""
        if self._ended:
            return
        self._ended = True
        self.beat(state, step, missing, requested)
        line = "monitor: %d steps with %d values of %d series in %s"
        logger.info(line, self._steps, self._rows, requested, self.directory)
        if missing:
            logger.warning("monitor: %d series never had a value: %s", len(missing), summary_of(missing))


def _command() -> str:
    """What is run, as it is typed; empty where a launcher started this process, whose own command nobody here knows."""
    given = os.environ.get("MSPROBE_ATTACH")
    if given is not None:
        return str(json.loads(given).get("command", ""))
    if os.environ.get("WORLD_SIZE", "1") != "1" or not hasattr(sys, "orig_argv"):
        return ""
    return shlex.join(sys.orig_argv)


def summary_of(missing: list) -> str:
    """Names the first few of each table and reason.

    Args:
        missing: (table, name, why).

    Returns:
        One line.
    """
    groups: dict = {}
    for table, name, why in missing:
        groups.setdefault((table, why), []).append(name)
    parts = []
    for (table, why), names in groups.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        parts.append(f"{table} of {', '.join(names[:_SHOWN])}{more} ({why})")
    return "; ".join(parts)

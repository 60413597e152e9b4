"""The training's end of an online check: steps are recorded as task tensor does, and a process of its own sends them."""

import json
import os
import secrets
import select
import subprocess
import sys
import time
from typing import Any, Optional

from ... import _core
from ..._capture.log import logger
from ..._capture.words import say
from .settings import Settings

_LOOK = 0.02  # seconds
_SENDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "_online_sender.py")


class Feed:
    """What a capture asks before a step, and what it says after it. Nothing here raises, and only begin() and end() wait."""

    def __init__(self, settings: Settings) -> None:
        """Starts nothing yet."""
        self._settings = settings
        self._process: Optional[subprocess.Popen] = None
        self._waiting: list = []  # (directory, bytes) of steps that are not acknowledged
        self._left_out = 0
        self._buffer = b""
        self._over = False
        self._warned = self._ended = False

    def begin(self, rank: Optional[int]) -> bool:
        """Whether the step that begins is recorded: there is room for it, if need be after a wait.

        Args:
            rank: That of the process; None without ranks.

        Returns:
            False for a step that is left out.
        """
        if self._process is None and not self._over:
            self._start(rank or 0)
        most = self._settings.online_queue_mb << 20
        end = time.monotonic() + self._settings.online_wait
        room = most - self._bytes()
        while room <= 0 and not self._is_over() and time.monotonic() < end:
            time.sleep(_LOOK)
            room = most - self._bytes()
        if self._is_over() or room <= 0:
            self._left_out += 1
            if room <= 0 and not self._warned:
                self._warned = True
                logger.warning(say(_LEFT_OUT, most=self._settings.online_queue_mb))
            return False
        return True

    def limit(self) -> None:
        """What the step that has begun may write."""
        most = self._settings.online_queue_mb << 20
        _core.limit_writing(most, most, "the queue of the online check is full")

    def take(self, directory: str, step: int) -> None:
        """A step is written.

        Args:
            directory: That of its rank.
            step: Its number.
        """
        if self._process is None or self._is_over():
            return
        size = sum(entry.stat().st_size for entry in _files(directory))
        self._waiting.append((directory, size))
        self._tell({"dump": os.path.abspath(directory), "step": step})

    def end(self) -> None:
        """The training is at its end: what is left is sent, as long as `online_end_wait` allows."""
        if self._process is None:
            if self._left_out and not self._ended:
                logger.warning(say(_NONE_SENT, steps=self._left_out))
            self._ended = True
            return
        process, self._process = self._process, None
        self._over = self._ended = True
        self._tell({"end": {"steps_left_out": self._left_out}}, process)
        try:
            out, _ = process.communicate(timeout=self._settings.online_end_wait + 5)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        self._hear(out)

    # ---- parts

    def _start(self, rank: int) -> None:
        settings = self._settings
        said = {
            "folder": settings.nfs_path,
            "host": settings.host,
            "port": settings.port,
            "tls": settings.tls_path,
            "token": settings.token_path,
            "run": secrets.token_hex(8),
            "rank": rank,
            "backward": not settings.online_run_ut_recompute,
            "end_wait": settings.online_end_wait,
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, os.path.normpath(_SENDER), json.dumps(said)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is the training's
            )
            os.set_blocking(self._process.stdin.fileno(), False)  # a process that is stopped does not stop the training
        except OSError as error:
            self._over = True
            logger.error(say("nothing is sent to a checker: %(why)s", why=error))

    def _bytes(self) -> int:
        self._waiting = [(folder, size) for folder, size in self._waiting if os.path.isdir(folder)]
        return sum(size for _, size in self._waiting)

    def _is_over(self) -> bool:
        """Hears what the process said; True when nothing will be sent any more."""
        process = self._process
        if process is not None and not self._over:
            while select.select([process.stdout], [], [], 0)[0]:
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    self._over = True
                    break
                self._hear(piece)
        return self._over

    def _hear(self, piece: bytes) -> None:
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if "waits" in said:
                logger.warning(say("the checker is not there, it is tried again: %(why)s", why=said["waits"]))
            elif "sent" in said:
                values = {**said, "steps": self._left_out}
                complete = not (said["left"] or said["refused"] or self._left_out)
                logger.log(20 if complete else 30, say(_SENT, **values))
            elif "refused" in said:
                self._over = True
                logger.error(say("nothing is sent to the checker: %(why)s", why=said["refused"]))

    def _tell(self, value: dict, process: Optional[subprocess.Popen] = None) -> None:
        process = process or self._process
        try:
            process.stdin.write(json.dumps(value).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            self._over = True


_LEFT_OUT = "steps are not recorded while more than %(most)s MB wait to be sent to the checker"
_NONE_SENT = "%(steps)s steps were not recorded: no checker takes them"
_SENT = "online check: %(acked)s calls are kept by the checker, %(left)s are not, %(steps)s steps were not recorded"


def _files(directory: str) -> Any:
    for place in (directory, os.path.join(directory, "dump_tensor_data")):
        try:
            with os.scandir(place) as entries:
                yield from (entry for entry in entries if entry.is_file())
        except OSError:
            continue

"""Where a process without a rank records: several of one `msprobe run` must not write over each other.

The first has `rank`, as a script with our lines; the others have `proc{pid}`, which every reader takes. A lock on dump_path
tells who runs, the times of files who has run: it leaves nothing behind, and a dump of an earlier run is replaced as ever.
"""

import fcntl
import glob
import os
from typing import Optional

from .._capture.files import make_directory
from .._capture.log import logger


class OwnDirectory:
    """Maps a dump_path to the name of the directory this process writes in each of its steps."""

    def __init__(self, began: float):
        self._began = began  # the command, in seconds since 1970
        self._names: dict = {}  # by dump_path
        self._locks: list = []  # held until the process ends

    def __call__(self, dump_path: str) -> str:
        path = os.path.abspath(dump_path)
        if path not in self._names:
            self._names[path] = self._choose(path)
        return self._names[path]

    def _choose(self, path: str) -> str:
        try:
            holder = self._holder(path)
        except OSError:  # no locks there; that nothing can be written is reported later
            holder = None
        if holder is None:
            return "rank"
        name = f"proc{os.getpid()}"
        logger.warning("%s: this process records below step*/%s, for %s has step*/rank.", path, name, holder)
        return name

    def _holder(self, path: str) -> Optional[str]:
        make_directory(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return "another process that runs"
        except OSError:
            os.close(descriptor)
            raise
        self._locks.append(descriptor)
        files = glob.iglob(os.path.join(glob.escape(path), "step*", "rank", "dump.json"))
        return "an earlier process of this run" if any(os.stat(f).st_mtime >= self._began for f in files) else None

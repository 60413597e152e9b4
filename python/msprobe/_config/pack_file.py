"""The zip file that several processes add to, in the layout of `msprobe config_check -d`."""

from __future__ import annotations

import fcntl
import os
import time
import zipfile

_STARTED = time.time()
_MARGIN = 30.0  # seconds by which the processes of one training may begin apart


class PackFile:
    """A zip archive whose members are appended under a lock, as mindstudio-probe does: both may write to one file."""

    def __init__(self, path: str) -> None:
        """Takes the path of the archive; its directory is created.

        Args:
            path: Must end in `.zip`.

        Raises:
            ValueError: The path does not end in `.zip`.
            OSError: The directory cannot be created.
        """
        if not isinstance(path, str) or not path.endswith(".zip"):
            raise ValueError(f"output_zip_path must be a text that ends in .zip, not {path!r}")
        self.path = os.path.abspath(path)
        os.makedirs(os.path.dirname(self.path), mode=0o750, exist_ok=True)

    def drop_earlier(self, alone: bool) -> None:
        """Removes what an earlier run left, so that its steps are not mixed with those of this one.

        Args:
            alone: No other process of this run writes to the file.
        """
        try:
            if alone or os.path.getmtime(self.path) < _STARTED - _MARGIN:
                os.remove(self.path)
        except FileNotFoundError:
            pass

    def add(self, members: dict[str, str | bytes]) -> None:
        """Appends members; of two with one name readers take the last.

        Args:
            members: Contents by name.
        """
        with open(self.path, "ab+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with zipfile.ZipFile(self.path, "a", zipfile.ZIP_DEFLATED) as archive:
                present = set(archive.namelist())
                for name, content in members.items():
                    if name not in present:
                        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        os.chmod(self.path, 0o640)

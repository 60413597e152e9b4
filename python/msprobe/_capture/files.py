"""Files of the Python side: directories 0750, files 0640, and under a final name nothing but what is complete."""

import os
from typing import Any


def make_directory(path: str) -> None:
    """Creates a directory and its parents, all with mode 0750 (os.makedirs() applies its mode to the last one only)."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory, 0o750)
        except FileExistsError:  # another rank was faster
            if not os.path.isdir(directory):
                raise


def open_new(path: str) -> int:
    """Opens a file for writing, never through a symbolic link. Returns its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o640)


def write_file(path: str, *parts: Any) -> None:
    """Writes a file that appears whole under its final name, or not at all."""
    make_directory(os.path.dirname(path))
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with os.fdopen(open_new(temporary), "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise

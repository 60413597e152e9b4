"""Files in the tensor directory of a step that Python writes."""

import os
import tempfile
from typing import Any, Callable, Optional

from .. import _core

_FILE_MODE = 0o640


def write(file: str, write_to: Callable) -> bool:
    """Writes a file of this name with `write_to(stream)`: whole or not at all. What fails is counted, and ends saving."""
    directory = _core.tensor_dir()
    if not directory:
        _core.count_tensor_file(0, False)
        return False
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".tmp", dir=directory)
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, _FILE_MODE)
            write_to(stream)
            size = stream.tell()
        os.replace(temporary, os.path.join(directory, file))
    except (OSError, RuntimeError) as error:  # torch.save() turns what the disk says into a RuntimeError
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        _core.count_tensor_file(0, False)
        _core.stop_saving(f"{os.path.join(directory, file)} could not be written ({error}): free some space")
        return False
    _core.count_tensor_file(size, True)
    return True


def save_npy(array: Any, name: str) -> Optional[str]:
    """Saves an array of numbers or texts as `name`.npy; returns the name of the file, None for objects."""
    import numpy as np

    if array.dtype.kind not in "biufcUS":
        return None
    file = f"{name}.npy"
    return file if write(file, lambda stream: np.save(stream, array, allow_pickle=False)) else None

"""Files of values that the recorder cannot save by itself; called, like odd_values, with hooks and gradients off."""

import os
import tempfile
from typing import Any, Callable, Optional

import torch

from .. import _core

_FILE_MODE = 0o640


def has_memory(tensor: torch.Tensor) -> bool:
    """Tells whether all elements lie in memory that the tensor owns."""
    if tensor.numel() == 0:
        return True
    try:
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError):  # a wrapper around other tensors
        return False
    reach = 1 + tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return start != 0 and reach * tensor.element_size() <= size


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the elements of a strided tensor as plain CPU memory."""
    plain = tensor.detach().resolve_neg().resolve_conj()
    if plain.device.type != "cpu":
        plain = plain.to("cpu")
    return plain if type(plain) is torch.Tensor else plain.as_subclass(torch.Tensor)


def save_tensor(tensor: torch.Tensor, name: str) -> Optional[str]:
    """Writes `name`.pt into the tensor directory. Returns the file name, or None if there is nothing to save."""
    if tensor.is_meta or type(tensor).__name__ in ("FakeTensor", "AsyncCollectiveTensor"):
        return None
    file = f"{name}.pt"
    if tensor.layout is torch.strided and not tensor.is_quantized:
        return file if has_memory(tensor) and _core.save_tensor(file, readable(tensor)) else None
    saved = tensor.detach().to("cpu").clone()
    return file if _write(file, lambda stream: torch.save(saved, stream)) else None


def save_array(array: Any, name: str) -> Optional[str]:
    """Saves numbers as a tensor and text as .npy; returns None for objects."""
    import numpy as np

    if array.dtype.kind in "biufc":
        file = f"{name}.pt"
        try:
            tensor = torch.tensor(array)
        except TypeError:  # a type that tensors do not have
            return None
        return file if _core.save_tensor(file, tensor) else None
    if array.dtype.kind not in "US":
        return None
    file = f"{name}.npy"
    return file if _write(file, lambda stream: np.save(stream, array, allow_pickle=False)) else None


def _write(file: str, write: Callable) -> bool:
    directory = _core.tensor_dir()
    if not directory:
        _core.count_tensor_file(0, False)
        return False
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".tmp", dir=directory)
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, _FILE_MODE)
            write(stream)
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

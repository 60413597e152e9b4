"""Files of values that the recorder cannot save by itself; called, like odd_values, with hooks and gradients off."""

from typing import Any, Optional

import torch

from .. import _core
from .._capture import tensor_file


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
    return file if tensor_file.write(file, lambda stream: torch.save(saved, stream)) else None


def save_array(array: Any, name: str) -> Optional[str]:
    """Saves numbers as a tensor and text as .npy; returns None for objects."""
    if array.dtype.kind not in "biufc":
        return tensor_file.save_npy(array, name)
    file = f"{name}.pt"
    try:
        tensor = torch.tensor(array)
    except TypeError:  # a type that tensors do not have
        return None
    return file if _core.save_tensor(file, tensor) else None

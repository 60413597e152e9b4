"""The memory of tensors as bytes, without NumPy."""

import ctypes
import math
from typing import Any

import torch


def bytes_of(tensor: torch.Tensor) -> Any:
    """Returns a view of the elements of a contiguous CPU tensor; valid as long as the tensor."""
    size = math.prod(tensor.shape) * tensor.element_size()
    return (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b""

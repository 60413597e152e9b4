"""The memory of tensors as bytes, without NumPy."""

import ctypes
import math
from typing import Any

import torch


def bytes_of(tensor: torch.Tensor) -> Any:
    """Returns a view of the elements of a contiguous CPU tensor, which lives as long as the view."""
    size = math.prod(tensor.shape) * tensor.element_size()
    if not size:
        return b""
    view = (ctypes.c_char * size).from_address(tensor.data_ptr())
    view.tensor = tensor
    return view

"""Arrays in the format of NumPy, without it."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch


def npy_header(shape: Sequence, kind: str) -> bytes:
    """Builds the header of a .npy file. `kind` is NumPy's name of the dtype, e.g. "<f4" or "|b1"."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def bytes_of(tensor: torch.Tensor) -> Any:
    """Returns a view of the elements of a contiguous CPU tensor; valid as long as the tensor."""
    size = math.prod(tensor.shape) * tensor.element_size()
    return (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b""

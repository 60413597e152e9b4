"""Inputs and results of calls as .npy files."""

import os
from typing import Any

import torch

from ..._capture.files import write_file
from ..._capture.npy import npy_header
from ..npy import bytes_of

_KINDS = {
    torch.bool: "|b1",
    torch.uint8: "|u1",
    torch.int8: "|i1",
    torch.int16: "<i2",
    torch.int32: "<i4",
    torch.int64: "<i8",
    torch.float32: "<f4",
    torch.float64: "<f8",
    torch.complex64: "<c8",
    torch.complex128: "<c16",
}
_SCALARS = {bool: torch.bool, int: torch.int64, float: torch.float64}


def save(value: Any, prefix: str, directory: str) -> None:
    """Writes `{prefix}.npy`; values in lists are `{prefix}.0.npy` and so on. Halves are written as float32.

    Args:
        value: Tensors of the CPU, numbers, and lists of them; anything else is left out.
        prefix: Begins the names of files.
        directory: Where they go.

    Raises:
        OSError: A file cannot be written.
        OverflowError: A number is beyond 64 bits.
    """
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            save(part, f"{prefix}.{index}", directory)
        return
    if type(value) in _SCALARS:
        value = torch.tensor(value, dtype=_SCALARS[type(value)], device="cpu")
    if not isinstance(value, torch.Tensor):
        return
    plain = value.detach().resolve_conj().resolve_neg()
    plain = (plain if plain.dtype in _KINDS else plain.float()).contiguous()
    header = npy_header(plain.shape, _KINDS[plain.dtype])
    write_file(os.path.join(directory, f"{prefix}.npy"), header, bytes_of(plain))

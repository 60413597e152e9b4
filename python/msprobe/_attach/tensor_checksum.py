"""Checksums of tensors, wherever and however they are stored."""

from typing import Any

import torch

from .. import _core


def checksum(tensor: Any) -> str:
    """CRC-32 of dtype, shape and elements."""
    plain = tensor.detach()
    if hasattr(plain, "to_local"):
        plain = plain.to_local()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if plain.is_quantized:
        plain = plain.int_repr()
    plain = plain.resolve_conj().resolve_neg().cpu().contiguous()
    head = f"{tensor.dtype}{tuple(tensor.shape)}".encode()
    return f"{_core.crc32(plain.data_ptr(), plain.numel() * plain.element_size(), _core.crc32_of(head)):08x}"

"""What a tensor is after it was stored in fp8, fp6, fp4 or int8, as `msprobe lowp` computes it."""

import torch

from .. import _core


def fake_quantize(
    tensor: torch.Tensor, format: str, *, saturate: bool = True, stochastic: bool = False, seed: int = 0
) -> torch.Tensor:
    """Stores a tensor in a format of few bits and reads it back.

    Args:
        tensor: of a floating type, on any device. Numbers that share a scale are neighbours in its last dimension,
            which should be the one that is summed over.
        format: "e4m3", "e5m2", "e3m2", "e2m3", "e2m1" or "int8", with ":tensor", ":row", ":16", ":32", ":1x128",
            ":128x128" or ":cast" (no scale) behind it; "mxfp8", "mxfp6", "mxfp4", "nvfp4", "bf16".
        saturate: numbers beyond the largest one become that; else NaN or infinity, as the format has it.
        stochastic: round up with the probability of what is cut off, instead of to the nearest number.
        seed: of the generator, Philox4x32-10: element i in C order takes lane i % 4 of block i // 4, its upper 24 bits.

    Returns:
        A tensor of the same shape, dtype and device, without a gradient.

    Raises:
        ValueError: the format is not known.
        TypeError: the tensor has no floating type.
    """
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"fake_quantize needs a floating type, not {tensor.dtype}")
    values = torch.empty(tensor.shape, dtype=torch.float32, device="cpu").copy_(tensor.detach())
    cols = values.shape[-1] if values.dim() else 1
    if values.numel():
        _core.fake_quantize(values.data_ptr(), values.numel() // cols, cols, format, saturate, stochastic, seed)
    return values.to(dtype=tensor.dtype, device=tensor.device)

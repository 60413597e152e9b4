"""Kernels of PyTorch that take many tensors: launching a kernel for each small tensor takes longer than what it computes."""

import functools

import torch

# Since PyTorch 2.4; torch.optim uses them on devices.
_NAMES = ("_foreach_max", "_foreach_neg", "_foreach_norm", "_foreach_clamp_min", "_foreach_clamp_max")


@functools.cache
def are_there(device_type: str) -> bool:
    """Tells whether a device has the kernels, and double precision to add up in.

    Args:
        device_type: Such as "cuda".

    Returns:
        True if extremes_and_sums() works there.
    """
    if not all(hasattr(torch, name) for name in _NAMES):
        return False
    try:
        extremes_and_sums([torch.ones(2, device=device_type)] * 2)
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    return True


def extremes_and_sums(tensors: list) -> list:
    """Smallest and largest element, sum and norm of each tensor.

    Args:
        tensors: Of one floating dtype and device, each with elements.

    Returns:
        Four tensors on that device with a number for each: of the dtype, and sums and norms in float64. Of a tensor with NaN all
        are NaN.
    """
    low = torch.stack(torch._foreach_max(torch._foreach_neg(tensors))).neg_()
    high = torch.stack(torch._foreach_max(tensors))
    # There is no sum of many: that of what is above zero, less that of what is below.
    total = torch.stack(torch._foreach_norm(torch._foreach_clamp_min(tensors, 0.0), 1, dtype=torch.float64))
    total -= torch.stack(torch._foreach_norm(torch._foreach_clamp_max(tensors, 0.0), 1, dtype=torch.float64))
    norm = torch.stack(torch._foreach_norm(tensors, 2, dtype=torch.float64))
    return [low, high, total, norm]

"""How far the results of two calls are apart, by the standards of mindstudio-probe."""

import math
from typing import Any

import torch

from ..._capture.free_benchmark import EQUAL, NOISE, SMALLEST_NOISE, Difference
from ..._capture.free_benchmark import threshold_of as _threshold_of
from .perturb import name_of

FLIPPED = "symbol_flipping"
SMALL_GRADIENT = 1e-3
# Of a CPU's result: relative error of elements from 1 on and absolute error below; the bias of all.
_RELATIVE = {torch.float16: 2**-11, torch.bfloat16: 2**-8}
_RELATIVE_OF_OTHERS, _SMALL, _BIAS = 2**-14, 1.0, 1e-4


def threshold_of(dtype: torch.dtype) -> float:
    """Returns the largest ratio of two results of this dtype that counts as rounding."""
    return _threshold_of(name_of(dtype))


def is_floating(value: Any) -> bool:
    """Whether a result has a floating-point tensor."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(part, torch.Tensor) and part.is_floating_point() for part in parts)


def ratio_of(ours: torch.Tensor, other: torch.Tensor, backward: bool) -> Any:
    """Returns the largest ratio of two elements, FLIPPED when two of different sign are not small, NaN if unknown."""
    if ours.dtype == torch.bool or other.dtype == torch.bool or ours.is_complex() or ours.shape != other.shape:
        return math.nan
    if ours.numel() == 0:
        return EQUAL
    noise = NOISE.get(name_of(other.dtype), SMALLEST_NOISE)
    smallest = SMALL_GRADIENT if backward else noise**0.5
    ours = ours.to(other.dtype).to(other.device)
    if (ours * other).min() < -(smallest**2):
        return FLIPPED
    ratios = torch.nan_to_num(ours.abs().clamp(min=smallest) / other.abs().clamp(min=smallest), nan=EQUAL)
    low, high = (end.item() for end in torch.aminmax(ratios))
    return max(high, math.inf if low == 0 else 1 / low)


def compare(ours: Any, other: Any, thresholds: Any, backward: bool = False) -> tuple[list[Difference], float]:
    """Compares results element by element.

    Args:
        ours: The result of the script's call.
        other: That of the changed call.
        thresholds: A function of the dtype of a result.
        backward: Whether they are gradients, of which more is small.

    Returns:
        What is not consistent, and the largest ratio.
    """
    if not isinstance(ours, (list, tuple)):
        consistent, ratio = _pair(ours, other, thresholds, backward)
        return ([] if consistent else [Difference(ratio, None, ours)]), (ratio if isinstance(ratio, float) else 0.0)
    found, largest = [], 0.0
    for index, (a, b) in enumerate(zip(ours, other)):
        consistent, ratio = _pair(a, b, thresholds, backward)
        largest = max(largest, ratio) if isinstance(ratio, float) else largest
        if not consistent:
            found.append(Difference(ratio, index, a))
    return found, largest


def _pair(ours: Any, other: Any, thresholds: Any, backward: bool) -> tuple[bool, Any]:
    if isinstance(other, float):
        return math.isclose(ours, other), (ours / other if other else math.nan)
    if isinstance(other, int):
        return ours == other, None
    if not isinstance(ours, torch.Tensor) or not isinstance(other, torch.Tensor):
        return True, None
    ratio = ratio_of(ours, other, backward)
    if ratio == FLIPPED:
        return False, ratio
    limit = thresholds(ours.dtype)
    return math.isnan(ratio) or 1 / limit <= ratio <= limit, ratio


def agrees(ours: Any, truth: Any) -> bool:
    """Whether a result is that of the CPU, as far as rounding goes."""
    if isinstance(truth, torch.Tensor):
        return isinstance(ours, torch.Tensor) and _tensor_agrees(ours, truth)
    if isinstance(truth, dict):
        return len(ours) == len(truth) and all(key in ours and agrees(ours[key], part) for key, part in truth.items())
    if isinstance(truth, (list, tuple)):
        return len(ours) == len(truth) and all(agrees(a, b) for a, b in zip(ours, truth))
    return math.isclose(ours, truth) if isinstance(truth, float) else ours == truth


def _tensor_agrees(ours: torch.Tensor, truth: torch.Tensor) -> bool:
    if truth.numel() == 0 or truth.is_complex():
        return True
    if truth.is_floating_point() and not torch.isfinite(truth).all():
        return True
    relative = _RELATIVE.get(ours.dtype, _RELATIVE_OF_OTHERS)
    ours = torch.where(torch.isfinite(ours), ours, torch.ones_like(ours)).double().to(truth.device)
    truth = truth.double()
    apart = ours - truth
    large = ours.abs() >= _SMALL
    absolute_error = torch.where(large, torch.zeros_like(apart), apart.abs()).max()
    relative_error = torch.where(large, apart.abs() / truth.abs(), torch.zeros_like(apart)).max()
    bias = (apart / torch.where(truth.abs() >= _SMALL, truth.abs(), torch.ones_like(truth))).mean()
    return not (absolute_error > relative or relative_error > relative or bias > _BIAS)

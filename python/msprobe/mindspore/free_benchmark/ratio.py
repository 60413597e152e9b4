"""How far the results of two calls are apart, by the standard that mindstudio-probe has for MindSpore."""

import math
from typing import Any

import mindspore
import numpy as np

from ..._capture.free_benchmark import EQUAL, NOISE, SMALLEST_NOISE, Difference, threshold_of
from .tensors import array_of, is_floating, name_of

FLIPPED = 8.0  # the ratio of two elements of different sign


def compare(ours: Any, other: Any, exact: bool) -> list[Difference]:
    """Compares results element by element.

    Args:
        ours: The result of the script's call: a tensor, or several.
        other: That of the changed call.
        exact: Whether nothing was changed, so that nothing may differ.

    Returns:
        What is not consistent.
    """
    if is_floating(ours):
        return _pair(ours, other, exact, None)
    if not isinstance(ours, (list, tuple)) or not isinstance(other, (list, tuple)):
        return []
    pairs = enumerate(zip(ours, other))
    return [found for index, (a, b) in pairs if is_floating(a) for found in _pair(a, b, exact, index)]


def _pair(ours: mindspore.Tensor, other: Any, exact: bool, index: Any) -> list[Difference]:
    if not is_floating(other) or ours.shape != other.shape:
        return []
    small = NOISE.get(name_of(other.dtype), SMALLEST_NOISE) ** 0.5
    limit = EQUAL if exact else threshold_of(name_of(ours.dtype))
    a, b = array_of(ours), array_of(other)
    for ratio in (ratio_of(a, b, small), ratio_with_small(a, b, small)):
        if not 1 / limit <= ratio <= limit:
            return [Difference(ratio, index, ours)]
    return []


def ratio_of(ours: np.ndarray, other: np.ndarray, small: float) -> float:
    """Returns the largest ratio of two elements.

    Args:
        ours: The result of the script's call.
        other: That of the changed call, whose precision counts.
        small: What is not larger counts as equal to everything.

    Returns:
        1 where all are equal, FLIPPED where two are of different sign, infinity where one alone is NaN or infinite.
    """
    if ours.size == 0:
        return EQUAL
    with np.errstate(all="ignore"):
        ours = ours.astype(other.dtype)
        finite = np.isfinite(ours) & np.isfinite(other)
        same = finite | (ours == other) | (np.isnan(ours) & np.isnan(other))
        if not same.all():
            return math.inf
        one = other.dtype.type(1)
        over = np.where(finite & (np.abs(other) > small), ours / other, one)
        under = np.where(finite & (np.abs(ours) > small), other / ours, one)
    if over.min() < 0:
        return FLIPPED
    return float(max(over.max(), under.max()))


def ratio_with_small(ours: np.ndarray, other: np.ndarray, small: float) -> float:
    """The same where the standard sees nothing: it passes over a result of 0 that is 5 when the inputs are changed."""
    if ours.size == 0:
        return EQUAL
    ours = ours.astype(other.dtype)
    finite = np.isfinite(ours) & np.isfinite(other)
    ours, other = (np.maximum(np.abs(np.where(finite, x, 1)), x.dtype.type(small)) for x in (ours, other))
    return float(max((ours / other).max(), (other / ours).max()))

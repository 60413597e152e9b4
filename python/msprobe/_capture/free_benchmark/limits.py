"""By how much inputs are moved, and how far results may be apart, by the standards of mindstudio-probe."""

from typing import Any, NamedTuple, Optional

# By how much an element is moved, by the name of its dtype; half of the digits are above its root.
NOISE = {"bfloat16": 1e-4, "float16": 1e-6, "float32": 1e-8, "float64": 1e-16}
THRESHOLDS = {"float16": 1.002, "bfloat16": 1.004, "float32": 1.0002}
EQUAL = 1.0
SMALLEST_NOISE = NOISE["float32"]  # of dtypes that have none of their own


class Difference(NamedTuple):
    """A result that is not consistent; `ratio` is None where only that is known, `index` where there is one result."""

    ratio: Any
    index: Optional[int]
    result: Any


def threshold_of(dtype: str) -> float:
    """Returns the largest ratio of two results of the dtype of this name that counts as rounding."""
    return THRESHOLDS.get(dtype, THRESHOLDS["float32"])

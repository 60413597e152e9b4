"""Task free_benchmark: each function is called again with inputs that were changed a little, and the results are compared.

The script gets the results of its own call, bit for bit, unless `handler_type` is `fix`. Here is what both frameworks have in common.
"""

from .calls import FAULTS, Benchmark
from .inputs import Tensors, first_input, mapped, perturbed
from .limits import EQUAL, NOISE, SMALLEST_NOISE, THRESHOLDS, Difference, threshold_of
from .rows import Rows
from .settings import Settings

__all__ = [
    "EQUAL",
    "FAULTS",
    "NOISE",
    "SMALLEST_NOISE",
    "THRESHOLDS",
    "Benchmark",
    "Difference",
    "Rows",
    "Settings",
    "Tensors",
    "first_input",
    "mapped",
    "perturbed",
    "threshold_of",
]

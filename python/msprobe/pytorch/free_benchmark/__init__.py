"""Task free_benchmark: each function is called again with inputs that were changed a little, and the results are compared.

The script gets the results of its own call, bit for bit, unless `handler_type` is `fix`.
"""

from .benchmark import FreeBenchmark
from .settings import Settings

__all__ = ["FreeBenchmark", "Settings"]

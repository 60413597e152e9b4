"""Capture for PyTorch: `from msprobe.pytorch import PrecisionDebugger, seed_all`."""

import sys

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        f"msprobe.pytorch needs PyTorch, which {sys.executable} does not have: install torch there, or run the script with "
        "the Python of your training environment after installing msprobe into it",
        name="torch",
    ) from None

from .config import MsprobeException
from .debugger import PrecisionDebugger, module_dump, module_dump_end
from .seed import seed_all

__all__ = ["MsprobeException", "PrecisionDebugger", "module_dump", "module_dump_end", "seed_all"]

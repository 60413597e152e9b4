"""Capture for PyTorch: `from msprobe.pytorch import PrecisionDebugger, seed_all`."""

from .config import MsprobeException
from .debugger import PrecisionDebugger, module_dump, module_dump_end
from .seed import seed_all

__all__ = ["MsprobeException", "PrecisionDebugger", "module_dump", "module_dump_end", "seed_all"]

"""Capture for PyTorch: `from msprobe.pytorch import PrecisionDebugger, seed_all`."""

import sys

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        f"msprobe.pytorch needs PyTorch, which {sys.executable} does not have: install torch there, or run the script with "
        "the Python of your training environment after installing msprobe into it",
        name="torch",
    ) from None
if not hasattr(torch.nn.Module(), "_forward_pre_hooks_with_kwargs"):
    raise ImportError(f"msprobe.pytorch needs PyTorch 2.0 or newer, {sys.executable} has {torch.__version__}")

from msprobe._compare import CompareException, compare, compare_distributed

from .config import MsprobeException
from .debugger import PrecisionDebugger, module_dump, module_dump_end
from .random_calls import random_save
from .seed import seed_all
from .single_compare import SingleComparator
from .single_save import SingleSave
from .unavailable import AclGraphDumper, TrainerMon, acl_save, set_fx_dump_config, set_ge_dump_config

__all__ = [
    "AclGraphDumper",
    "CompareException",
    "MsprobeException",
    "PrecisionDebugger",
    "SingleComparator",
    "SingleSave",
    "TrainerMon",
    "acl_save",
    "compare",
    "compare_distributed",
    "module_dump",
    "module_dump_end",
    "random_save",
    "seed_all",
    "set_fx_dump_config",
    "set_ge_dump_config",
]

"""Records what a MindSpore script computes, and compares dumps: `from msprobe.mindspore import PrecisionDebugger, seed_all`.

PrecisionDebugger                 record training or inference, step by step
seed_all                          make two runs draw the same random numbers
MsprobeStep, MsprobeInitStep      callbacks of mindspore.train.Model that do the former
OptimizerRecord                   what an optimizer is given and makes of it, for `msprobe optimizer_replay`
save, save_grad, step             save single tensors, also in static graphs
TrainerMon                        writes statistics of gradients, parameters and activations of a whole training
compare, compare_distributed      compare two recordings; need no MindSpore
"""

import importlib
import importlib.util
import sys
from typing import Any

from msprobe._compare_result import CompareException, CompareResult

from .._environment import without_lock
from .compare.distributed_compare import ms_compare_distributed as compare_distributed
from .compare.ms_compare import ms_compare as compare

# What records needs MindSpore; it is imported when one of these is asked for.
_RECORDING = {
    "MsprobeException": ".._capture.errors",
    "MsprobeInitStep": ".callbacks",
    "MsprobeStep": ".callbacks",
    "OptimizerRecord": ".optimizer_record",
    "PrecisionDebugger": ".debugger",
    "TrainerMon": ".monitor.trainer_mon",
    "save": ".static_save",
    "save_grad": ".static_save",
    "seed_all": ".seed",
    "step": ".static_save",
}

__all__ = [
    "CompareException",
    "CompareResult",
    "MsprobeException",
    "MsprobeInitStep",
    "MsprobeStep",
    "OptimizerRecord",
    "PrecisionDebugger",
    "TrainerMon",
    "compare",
    "compare_distributed",
    "save",
    "save_grad",
    "seed_all",
    "step",
]


def __getattr__(name: str) -> Any:
    """Imports what records, and explains which names of mindstudio-probe are not available.

    Args:
        name: The missing name.

    Returns:
        The class or function of this name.

    Raises:
        AttributeError: For names with an underscore in front, which Python and its tools look up.
        ImportError: There is no such name, or no MindSpore.
    """
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(name)  # of a module here, which is then imported
    if name not in _RECORDING:
        raise ImportError(f"msprobe.mindspore has no {name}: it has {', '.join(__all__)}")
    if without_lock():
        raise ImportError(without_lock())
    try:
        importlib.import_module("mindspore")
    except ModuleNotFoundError as error:
        if error.name != "mindspore":
            raise
        raise ImportError(
            f"msprobe.mindspore.{name} needs MindSpore, which {sys.executable} does not have: install mindspore there, or "
            "run the script with the Python of your training environment after installing msprobe into it",
            name="mindspore",
        ) from None
    module = importlib.import_module(_RECORDING[name], __name__)
    found = getattr(module, name)
    globals()[name] = found
    return found

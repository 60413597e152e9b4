"""Records what a PyTorch script computes: `from msprobe.pytorch import PrecisionDebugger, seed_all`.

PrecisionDebugger                 record training or inference, step by step
seed_all, random_save             make two runs draw the same random numbers; find the calls that draw them
module_dump, module_dump_end      record a single module under a name of your choice
OptimizerRecord                   what an optimizer is given and makes of it, for `msprobe optimizer_replay`
SingleSave, SingleComparator      save named tensors of a loop; compare what two runs saved
compare, compare_distributed      compare two recordings (`from msprobe import compare` needs no PyTorch)
fake_quantize                     what a tensor is after it was stored in fp8, fp6, fp4 or int8

PtdbgDispatch                     run each aten operator again on the CPU, and judge its results by that
TrainerMon                        watch a whole training: gradients, optimizer states, parameters, activations

AclGraphDumper, acl_save, set_fx_dump_config and set_ge_dump_config are names of mindstudio-probe that raise an
error which says what to use instead.
"""

import sys

from .._environment import without_lock

if without_lock():
    raise ImportError(without_lock())
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
if any(base.__module__.partition(".")[0] == "mindspore" for base in getattr(torch, "Tensor", object).__mro__):
    raise ImportError(
        f"the torch that {sys.executable} has is an adapter of MindSpore (MSAdapter), whose capture is not here: record with "
        "msprobe.mindspore at level L1, or with mindstudio-probe, whose dumps msprobe compare reads"
    )
if not hasattr(torch.nn.Module(), "_forward_pre_hooks_with_kwargs"):
    raise ImportError(f"msprobe.pytorch needs PyTorch 2.0 or newer, {sys.executable} has {torch.__version__}")

from msprobe._compare_result import CompareException, CompareResult

from .._capture.errors import MsprobeException
from .compare.distributed_compare import compare_distributed
from .compare.pt_compare import compare
from .debugger import PrecisionDebugger
from .low_precision import fake_quantize
from .module_dump import module_dump, module_dump_end
from .monitor.module_hook import TrainerMon
from .online_dispatch import PtdbgDispatch
from .optimizer_record import OptimizerRecord
from .random_calls import random_save
from .seed import seed_all
from .single_compare import SingleComparator
from .single_save import SingleSave
from .unavailable import AclGraphDumper, acl_save, set_fx_dump_config, set_ge_dump_config

__all__ = [
    "AclGraphDumper",
    "CompareException",
    "CompareResult",
    "MsprobeException",
    "OptimizerRecord",
    "PrecisionDebugger",
    "PtdbgDispatch",
    "SingleComparator",
    "SingleSave",
    "TrainerMon",
    "acl_save",
    "compare",
    "compare_distributed",
    "fake_quantize",
    "module_dump",
    "module_dump_end",
    "random_save",
    "seed_all",
    "set_fx_dump_config",
    "set_ge_dump_config",
]

"""seed_all: makes two runs of a training script draw the same random numbers."""

import os
import random
from typing import Any

import torch

from .._capture.config import MsprobeException
from .._capture.config.keys import MAX_SEED
from .._capture.words import say, wrong
from . import random_calls

_NPU_VARIABLES = {
    "HCCL_DETERMINISTIC": "True",
    "LCCL_DETERMINISTIC": "1",
    "CLOSE_MATMUL_K_SHIFT": "1",
    "ATB_LLM_LCOC_ENABLE": "0",
}


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seeds Python, NumPy and PyTorch on every device, so that two runs draw the same random numbers.

    Call it before the model is built. PYTHONHASHSEED is set as well; it affects processes started from here on.

    Args:
        seed: 0 to 2**32 - 1.
        mode: Use deterministic algorithms only (torch.use_deterministic_algorithms); operations that have none raise a
            RuntimeError. On CUDA, cuDNN is made deterministic and CUBLAS_WORKSPACE_CONFIG is set regardless of `mode`.
        rm_dropout: Make F.dropout, F.dropout2d and F.dropout3d keep every element, unscaled, for the rest of the process.
            Layers that call them are affected as well.
        is_enhanced: Start every random call from the state right after seeding, so that its result does not depend on how
            many random calls came before. A later seed_all() without it ends this.

    Raises:
        MsprobeException: `seed` is out of range or not an int, or another argument is not a bool.
    """
    _check(seed, mode, rm_dropout, is_enhanced)
    random_calls.unfix()
    _seed(seed, mode)
    if rm_dropout:
        _remove_dropout()
    if is_enhanced:
        random_calls.fix()


def _check(seed: Any, mode: Any, rm_dropout: Any, is_enhanced: Any) -> None:
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise _invalid("seed", seed, say("an integer from %(least)s to %(most)s", least=0, most=MAX_SEED))
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout), ("is_enhanced", is_enhanced)):
        if not isinstance(value, bool):
            raise _invalid(name, value, "True or False")


def _invalid(name: str, value: Any, allowed: str) -> MsprobeException:
    text = wrong(name, repr(value), allowed, f"argument {name} of seed_all")
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _seed(seed: int, deterministic: bool) -> None:
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    numpy = random_calls.numpy_module()
    if numpy is not None:
        numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(deterministic)
    npu = random_calls.npu()
    if npu is not None:
        npu.manual_seed_all(seed)
        os.environ.update(_NPU_VARIABLES)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        if torch.version.cuda:
            os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"


# ---- rm_dropout


def _remove_dropout() -> None:
    """Exchanges the code of the functions, not the functions, so that references taken earlier keep everything as well."""
    functional = torch.nn.functional
    for function in (functional.dropout, functional.dropout2d, functional.dropout3d):
        function.__code__ = _KEEP_ALL[function.__name__].__code__


# The unknown names below are looked up in torch.nn.functional, whose functions receive this code.
def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.dropout_(input, 0.0, training) if inplace else _VF.dropout(input, 0.0, training)  # noqa: F821


def _dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout2d, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.feature_dropout_(input, 0.0, training) if inplace else _VF.feature_dropout(input, 0.0, training)  # noqa: F821


def _dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout3d, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.feature_dropout_(input, 0.0, training) if inplace else _VF.feature_dropout(input, 0.0, training)  # noqa: F821


_KEEP_ALL = {"dropout": _dropout, "dropout2d": _dropout2d, "dropout3d": _dropout3d}

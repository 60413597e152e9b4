"""seed_all: makes two runs of a training script draw the same random numbers."""

import functools
import os
import random
import types
from typing import Any, Callable

import torch

from .config import MAX_SEED, MsprobeException

_NPU_VARIABLES = {
    "HCCL_DETERMINISTIC": "True",
    "LCCL_DETERMINISTIC": "1",
    "CLOSE_MATMUL_K_SHIFT": "1",
    "ATB_LLM_LCOC_ENABLE": "0",
}

_TORCH_RANDOM = (
    "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm".split()
)
_TENSOR_RANDOM = "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_".split()
_STATE_FUNCTIONS = frozenset("seed getstate setstate get_state set_state get_bit_generator set_bit_generator".split())

# (owner, name, original function) of everything is_enhanced has replaced.
_replaced: list = []


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seeds Python, NumPy and PyTorch, on every device there is.

    mode: use deterministic algorithms only (torch.use_deterministic_algorithms).
    rm_dropout: F.dropout, F.dropout2d and F.dropout3d keep everything, for the rest of the process.
    is_enhanced: every random call starts from the state right after seeding, so that it returns the same numbers however
        many random calls ran before it. A later seed_all without it ends this.
    """
    _check(seed, mode, rm_dropout, is_enhanced)
    _restore_random_functions()
    _seed(seed, mode)
    if rm_dropout:
        _remove_dropout()
    if is_enhanced:
        _fix_random_functions()


def _check(seed: Any, mode: Any, rm_dropout: Any, is_enhanced: Any) -> None:
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise _invalid("seed", seed, f"an integer from 0 to {MAX_SEED}")
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout), ("is_enhanced", is_enhanced)):
        if not isinstance(value, bool):
            raise _invalid(name, value, "True or False")


def _invalid(name: str, value: Any, allowed: str) -> MsprobeException:
    text = f"{name} is {value!r}; allowed: {allowed} (argument {name} of seed_all)"
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _npu() -> Any:
    npu = getattr(torch, "npu", None)
    return npu if npu is not None and npu.is_available() else None


def _seed(seed: int, deterministic: bool) -> None:
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    numpy = _numpy()
    if numpy is not None:
        numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(deterministic)
    npu = _npu()
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
def _dropout(input, p=0.5, training=True, inplace=False):
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.dropout_(input, 0.0, training) if inplace else _VF.dropout(input, 0.0, training)  # noqa: F821


def _dropout2d(input, p=0.5, training=True, inplace=False):
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout2d, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.feature_dropout_(input, 0.0, training) if inplace else _VF.feature_dropout(input, 0.0, training)  # noqa: F821


def _dropout3d(input, p=0.5, training=True, inplace=False):
    if has_torch_function_unary(input):  # noqa: F821
        return handle_torch_function(dropout3d, (input,), input, p=0.0, training=training, inplace=inplace)  # noqa: F821
    return _VF.feature_dropout_(input, 0.0, training) if inplace else _VF.feature_dropout(input, 0.0, training)  # noqa: F821


_KEEP_ALL = {"dropout": _dropout, "dropout2d": _dropout2d, "dropout3d": _dropout3d}


# ---- is_enhanced


def _fix_random_functions() -> None:
    state = random.getstate()
    _replace(random, _methods_of(random, random._inst), lambda: random.setstate(state))
    numpy = _numpy()
    if numpy is not None:
        numpy_state = numpy.random.get_state()
        names = [*_methods_of(numpy.random, numpy.random.mtrand._rand), "ranf", "sample"]
        _replace(numpy.random, names, lambda: numpy.random.set_state(numpy_state))
    reset = _torch_reset()
    _replace(torch, _TORCH_RANDOM, reset)
    _replace(torch.Tensor, _TENSOR_RANDOM, reset)


def _torch_reset() -> Callable[[], None]:
    cpu_state = torch.get_rng_state()
    npu = _npu()
    devices = [d for d in (torch.cuda if torch.cuda.is_available() else None, npu) if d is not None]
    device_states = [(device, device.get_rng_state_all()) for device in devices]

    def reset() -> None:
        torch.set_rng_state(cpu_state)
        for device, states in device_states:
            device.set_rng_state_all(states)

    return reset


def _methods_of(module: types.ModuleType, instance: Any) -> list:
    """The functions of a module that are methods of its hidden generator."""
    found = [name for name, value in vars(module).items() if getattr(value, "__self__", None) is instance]
    return [name for name in found if name not in _STATE_FUNCTIONS and not name.startswith("_")]


def _replace(owner: Any, names: list, reset: Callable[[], None]) -> None:
    for name in names:
        original = getattr(owner, name, None)
        if original is None:
            continue
        _replaced.append((owner, name, original))
        setattr(owner, name, _from_seed(original, reset))


def _from_seed(original: Callable, reset: Callable[[], None]) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        reset()
        try:
            return original(*args, **kwargs)
        finally:
            reset()

    # Tells the list of recorded functions what this stands for.
    call.msprobe_original = original
    return call


def _restore_random_functions() -> None:
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)

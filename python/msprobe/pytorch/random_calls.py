"""Calls that draw random numbers: seed_all(is_enhanced=True) has them start from one state, random_save() lists them."""

import csv
import functools
import linecache
import os
import random
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any, Callable, Optional, Union

import torch

from .._capture.config import MsprobeException
from .._capture.files import make_directory, open_new
from .._capture.log import logger
from .._capture.words import wrong
from .._compat import distributed_module

_TORCH = "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm".split()
_TENSOR = "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_".split()
_STATE_FUNCTIONS = frozenset("seed getstate setstate get_state set_state get_bit_generator set_bit_generator".split())
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_FRAMES = 1000

# (owner, name, original function, function in its place) of everything that is replaced.
_replaced: list = []
_resets: dict = {}  # group -> function that puts its generator back; empty unless is_enhanced
_list: Optional["_CallList"] = None


def numpy_module() -> Any:
    """Returns NumPy, or None."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def npu() -> Any:
    """Returns torch.npu if there is such a device, else None."""
    module = getattr(torch, "npu", None)
    return module if module is not None and module.is_available() else None


def fix() -> None:
    """Makes every random call start from the current state and leave it unchanged."""
    state = random.getstate()
    _resets["python_random"] = lambda: random.setstate(state)
    numpy = numpy_module()
    if numpy is not None:
        numpy_state = numpy.random.get_state()
        _resets["numpy_random"] = lambda: numpy.random.set_state(numpy_state)
    _resets["torch_random"] = _resets["tensor_random"] = _torch_reset()
    _install()


def unfix() -> None:
    """Undoes fix()."""
    _resets.clear()
    if _list is None:
        _uninstall()


def random_save(output_path: Union[str, "os.PathLike[str]"] = "./output") -> None:
    """Logs every call that draws random numbers, until the process ends, so that the calls of two runs can be compared.

    Writes `{output_path}/random_rank{r}_{time}.csv`, or `random_proc{pid}_{time}.csv` without torch.distributed, with the
    columns `api_name` (such as `torch_random.rand.0`, numbered per function) and `stack` (innermost frame first). The file is
    complete after every call. If it cannot be written, the log says so and the script continues.

    Args:
        output_path: Directory for the file; created if missing.

    Raises:
        MsprobeException: `output_path` is not a path.
    """
    global _list
    if not isinstance(output_path, (str, os.PathLike)) or not os.fspath(output_path):
        text = wrong("output_path", repr(output_path), "the path of a directory", "random_save")
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)
    _list = _CallList(os.fspath(output_path))
    _install()


def _torch_reset() -> Callable[[], None]:
    cpu_state = torch.get_rng_state()
    devices = [d for d in (torch.cuda if torch.cuda.is_available() else None, npu()) if d is not None]
    device_states = [(device, device.get_rng_state_all()) for device in devices]

    def reset() -> None:
        torch.set_rng_state(cpu_state)
        for device, states in device_states:
            device.set_rng_state_all(states)

    return reset


# ---- functions in the place of the random ones


def _functions() -> Iterator[tuple[str, Any, list]]:
    yield "python_random", random, _methods_of(random, random._inst)
    numpy = numpy_module()
    if numpy is not None:
        names = _methods_of(numpy.random, numpy.random.mtrand._rand)
        yield "numpy_random", numpy.random, [*names, "ranf", "sample"]
    yield "torch_random", torch, _TORCH
    yield "tensor_random", torch.Tensor, _TENSOR


def _methods_of(module: types.ModuleType, instance: Any) -> list:
    """Lists the functions of a module that are methods of its hidden generator."""
    found = [name for name, value in vars(module).items() if getattr(value, "__self__", None) is instance]
    return [name for name in found if name not in _STATE_FUNCTIONS and not name.startswith("_")]


def _install() -> None:
    if _replaced:
        return
    for group, owner, names in list(_functions()):
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:
                replacement = _stand_in(group, name, original)
                _replaced.append((owner, name, original, replacement))
                setattr(owner, name, replacement)


def _uninstall() -> None:
    while _replaced:
        owner, name, original, replacement = _replaced.pop()
        if vars(owner).get(name) is replacement:
            setattr(owner, name, original)


def _stand_in(group: str, name: str, original: Callable) -> Callable:
    full_name = f"{group}.{name}"

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _list is not None:
            _list.add(full_name)
        reset = _resets.get(group)
        if reset is None:
            return original(*args, **kwargs)
        reset()
        try:
            return original(*args, **kwargs)
        finally:
            reset()

    # Tells the list of recorded functions what this stands for.
    call.msprobe_original = original
    return call


# ---- the list of calls


class _CallList:
    """A csv file that is complete after every call."""

    def __init__(self, directory: str) -> None:
        self._lock = threading.Lock()
        self._counts: Counter = Counter()
        self._directory = directory
        self._pid = os.getpid()
        self._file: Any = None
        self._broken = False

    def add(self, name: str) -> None:
        if self._broken or os.getpid() != self._pid:
            return
        with self._lock:
            number = self._counts[name]
            self._counts[name] += 1
            try:
                if self._file is None:
                    self._file = self._open()
                csv.writer(self._file).writerow((f"{name}.{number}", _stack()))
                self._file.flush()
            except OSError as error:
                self._broken = True
                logger.warning("random calls are no longer listed: %s", error)

    def _open(self) -> Any:
        make_directory(self._directory)
        dist = distributed_module()
        known = dist.is_available() and dist.is_initialized()
        who = f"rank{dist.get_rank()}" if known else f"proc{self._pid}"
        path = os.path.join(self._directory, f"random_{who}_{time.strftime('%Y%m%d%H%M%S')}.csv")
        file = os.fdopen(open_new(path), "w", encoding="utf-8-sig", errors="backslashreplace", newline="")
        csv.writer(file).writerow(("api_name", "stack"))
        logger.info("Random calls are listed in %s.", path)
        return file


def _stack() -> str:
    """Formats the call stack as in stack.json, innermost frame first, without our own frames."""
    text = []
    frame = sys._getframe(1)
    while frame is not None and len(text) < _MAX_FRAMES:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            source = linecache.getline(code.co_filename, frame.f_lineno).strip()
            text.append(f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {source} \n")
        frame = frame.f_back
    return "".join(text)

"""The calls of a script between start() and stop(), each made again."""

import functools
import inspect
import os
import re
import threading
from collections.abc import Callable
from typing import Any, Optional

import mindspore

from ... import _core
from ..._capture.config import Config
from ..._capture.free_benchmark import Benchmark, Rows, first_input, mapped, perturbed
from ..._capture.free_benchmark.settings import BACKWARD, FIX, IMPROVE_PRECISION, NO_CHANGE, TO_CPU
from ..._capture.free_benchmark.settings import MODES as ALL_MODES
from ..._capture.log import logger
from ..apis import FOCUS, Api, hooked_apis
from ..writes import write_sites
from . import gradients
from .ratio import compare
from .tensors import TENSORS, copied, wait

MODES = tuple(mode for mode in ALL_MODES if mode != TO_CPU)
# A random number that is drawn once more is missing in the script; the states of some generators are hidden in kernels.
_DRAWS = re.compile(
    "rand|dropout|(^|_)normal(_|$)|uniform|bernoulli|multinomial|poisson$|^gamma$|laplace|gumbel|choice|shuffle|rrelu|"
    "fractional_max_pool|sampler|exponential|cauchy|geometric"
)
_UPDATING = ("batch_norm", "instance_norm")  # their running means, and nothing else: they get copies
_PATHS = {
    "Functional": "mindspore.ops.",
    "Tensor": "mindspore.Tensor.",
    "Mint": "mindspore.mint.",
    "MintFunctional": "mindspore.mint.nn.functional.",
}


class Function:
    """A function of MindSpore as it is called by one of its names."""

    def __init__(self, api: Api, writes: bool) -> None:
        """Finds out what of it may not be repeated."""
        self.owner, self.attr = api.owner, api.attr
        self.kind = f"{api.prefix}.{api.name}"
        self.path = _PATHS.get(api.prefix, f"{api.prefix}.") + api.name
        self.copies = api.name in _UPDATING
        self.repeats = not _DRAWS.search(api.name) and (self.copies or not writes)
        self._inplace = _position_of(getattr(api.owner, api.attr), "inplace")

    def overwrites(self, args: tuple, kwargs: dict) -> bool:
        """Whether this call changes its arguments."""
        if kwargs.get("inplace") or kwargs.get("out") is not None:
            return True
        return self._inplace >= 0 and len(args) > self._inplace and bool(args[self._inplace])


def _position_of(function: Callable, parameter: str) -> int:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a method in C
        return -1
    return names.index(parameter) if parameter in names else -1


class FreeBenchmark(Benchmark):
    """What task free_benchmark does in each step."""

    def __init__(self, config: Config, rank: Callable[[], Optional[int]]) -> None:
        """Takes a configuration whose section is valid."""
        super().__init__(config)
        self._path = os.path.join(config.dump_path, "free_benchmark.csv")
        self._rank = rank
        self._thread = 0
        self._inside = False  # of a call that is watched
        self._kept: list = []
        self._functions = list(self._hooked(config))
        if self._settings.if_preheat:
            logger.warning(
                "free_benchmark: if_preheat has no effect for MindSpore: thresholds are those of the dtypes."
            )

    def _hooked(self, config: Config) -> Any:
        writing = {(id(site.owner), site.attr) for site in write_sites(mindspore)}
        for api in hooked_apis(mindspore, config.custom_apis, config.exclude_apis):
            if api.prefix.endswith("Distributed"):
                continue
            function = Function(api, (id(api.owner), api.attr) in writing)
            details = {"instead": functools.partial(self.called, function)}
            if not _core.add_api(api.owner, api.attr, api.prefix, api.name, FOCUS, False, details):
                yield function

    def close(self) -> None:
        """Leaves MindSpore as it was, for good."""
        self.end()
        for function in self._functions:
            _core.remove_api(function.owner, function.attr)
        self._functions = []

    def _watch(self) -> None:
        self._thread = threading.get_ident()
        _core.install_apis()

    def _leave(self) -> None:
        _core.remove_apis()
        kept, self._kept = self._kept, []
        for call in kept:
            self._guarded(call.name, call.kind, functools.partial(self._check_gradients, call))

    def _new_rows(self, directory: str, step: int) -> Rows:
        rank = self._rank()
        return Rows(self._path, self._settings, step, "" if rank is None else rank, shared=True)

    def _described(self, result: mindspore.Tensor) -> tuple[Any, Any]:
        return result.dtype, result.shape

    def _wants_function(self, function: Function, name: str) -> bool:
        if self._list and function.path not in self._list and not self._is_listed(name):
            return False
        return not self._scope or name in self._scope or f"{name}.{self._settings.fuzz_stage}" in self._scope

    def called(self, function: Function, original: Callable, args: tuple, kwargs: dict) -> Any:
        """Makes a call of the script and, where it is chosen, the changed one. Returns what the script gets."""
        if self._inside or threading.get_ident() != self._thread:
            return original(*args, **kwargs)
        self._inside = True
        try:
            return self._call(function, original, args, kwargs)
        finally:
            self._inside = False

    def _call(self, function: Function, original: Callable, args: tuple, kwargs: dict) -> Any:
        name = f"{function.kind}.{self._counts[function.kind]}"
        self._counts[function.kind] += 1
        if not self._wants_function(function, name) or first_input(TENSORS, args) < 0:
            return original(*args, **kwargs)
        # Of a function that gets copies the changed call has no gradients of the script's tensors.
        unfit = function.copies and self._settings.handler_type == FIX
        if unfit or not function.repeats or function.overwrites(args, kwargs):
            self._leave_out(name, function.kind, "it draws random numbers or changes its arguments")
            return original(*args, **kwargs)
        if self._settings.fuzz_stage == BACKWARD:
            return self._keep(function, name, original, args, kwargs)
        before = _generator()
        given = (
            self._guarded(name, function.kind, lambda: _copied((args, kwargs))) if function.copies else (args, kwargs)
        )
        result = original(*args, **kwargs)
        # What went wrong until here is of the script, and is raised outside of what is guarded.
        wait()
        if given is None or _generator() != before:
            self._leave_out(name, function.kind, "it draws random numbers")
            return result
        self._calls += 1
        fixed = self._guarded(name, function.kind, lambda: self._checked(name, original, given, result))
        return result if fixed is None else fixed

    def _checked(self, name: str, original: Callable, given: tuple, result: Any) -> Any:
        """Returns what takes the place of the result; None: nothing does."""
        mode = self._settings.pert_mode
        if self._settings.handler_type == FIX:
            # Its gradient is that of the changed call, which is therefore made as the script makes its own.
            changed = perturbed(TENSORS, IMPROVE_PRECISION, *given)
            return None if changed is None else _fixed(result, original(*changed[0], **changed[1]))
        with mindspore._no_grad():
            changed = perturbed(TENSORS, mode, *given)
            if changed is None:
                return None
            for difference in compare(result, original(*changed[0], **changed[1]), mode == NO_CHANGE):
                self._differs(name, difference)
        return None

    def _keep(self, function: Function, name: str, original: Callable, args: tuple, kwargs: dict) -> Any:
        with mindspore._no_grad():
            call = self._guarded(
                name, function.kind, lambda: gradients.kept(name, function.kind, original, args, kwargs)
            )
        if call is not None:
            self._kept.append(call)
        return original(*args, **kwargs)

    def _check_gradients(self, call: gradients.KeptCall) -> None:
        self._calls += 1
        for difference in gradients.check(call, self._settings.pert_mode):
            self._differs(call.name, difference)


def _generator() -> bytes:
    return mindspore.get_rng_state().asnumpy().tobytes()


def _copied(value: Any) -> Any:
    with mindspore._no_grad():
        return mapped(TENSORS.kind, value, copied)


def _fixed(ours: Any, other: Any) -> Any:
    """The results of the changed call in the dtypes of the script's."""
    if isinstance(ours, mindspore.Tensor) and isinstance(other, mindspore.Tensor):
        if ours.shape != other.shape:
            raise ValueError("the changed call gives another shape")
        made = other.astype(ours.dtype)
        wait()
        return made
    if isinstance(ours, (list, tuple)) and isinstance(other, (list, tuple)) and len(ours) == len(other):
        parts = [_fixed(a, b) for a, b in zip(ours, other)]
        return type(ours)(*parts) if hasattr(ours, "_fields") else type(ours)(parts)
    raise TypeError(f"a result of type {type(ours).__name__} cannot be replaced")

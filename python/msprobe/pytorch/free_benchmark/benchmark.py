"""The calls of a script between start() and stop(), each made again."""

import dis
import os
import sys
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch.overrides import TorchFunctionMode

from ..._capture.config import Config
from ..._capture.free_benchmark import Benchmark, Difference, Rows, first_input
from ..._capture.free_benchmark.settings import BACKWARD, FIX, NO_CHANGE, TO_CPU
from ..._compat import distributed_module
from ..apis import hooked_apis
from .gradients import GradientCheck
from .perturb import TENSORS, Generators, drawing_from, mapped, perturbed
from .preheat import Preheat
from .ratio import agrees, compare, is_floating, threshold_of


class Call:
    """A call of the script: its name, its function and its inputs as they were before it."""

    def __init__(self, name: str, function: Callable, args: tuple, kwargs: dict) -> None:
        """Keeps the inputs, those that the function overwrites as copies."""
        self.name, self.function = name, function
        keep = _copied if _overwrites(name, kwargs) else (lambda value: value)
        self.args, self.kwargs = keep(args), keep(kwargs)
        self.generators = Generators()

    @property
    def pure_name(self) -> str:
        """`Functional.linear`."""
        return self.name.rsplit(".", 2)[0]

    def again(self, args: tuple, kwargs: dict) -> Any:
        """Calls the function with copies of other inputs; it draws the numbers that it has drawn."""
        with torch.no_grad(), drawing_from(self.generators):
            return self.function(*_copied(args), **_copied(kwargs))


def _copied(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor.detach().clone())


def _overwrites(name: str, kwargs: dict) -> bool:
    function = name.split(".")[-3] if name.count(".") >= 3 else name
    plain = function.endswith("_") and not function.endswith("__")
    return (
        plain
        or function.startswith("__i")
        or function == "__setitem__"
        or "out" in kwargs
        or bool(kwargs.get("inplace"))
    )


def _operator(function: Callable, frame: Any) -> str:
    """`__mul__` when Tensor.mul is called by the operator: names of calls tell them apart, which torch does not."""
    code, at = frame.f_code.co_code, frame.f_lasti
    kind = dis.opname[code[at]] if 0 <= at < len(code) else ""
    name = getattr(function, "__name__", "")
    if name.startswith("__") or kind == "BINARY_SUBSCR" or not kind.startswith(("BINARY_", "INPLACE_", "COMPARE_OP")):
        return ""
    stem = {"div": "truediv", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}.get(
        name.rstrip("_"), name.rstrip("_")
    )
    return f"__i{stem}__" if name.endswith("_") else f"__{stem}__"


class _Mode(TorchFunctionMode):
    """Sees each outermost call of a function of torch in this thread."""

    def __init__(self, benchmark: "FreeBenchmark") -> None:
        super().__init__()
        self._benchmark = benchmark

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Optional[dict] = None) -> Any:
        """Makes the call of the script, then the changed one."""
        operator = _operator(func, sys._getframe(1))
        if operator:
            func = getattr(torch.Tensor, operator, func)
        return self._benchmark.called(func, args, kwargs or {})


class FreeBenchmark(Benchmark):
    """What task free_benchmark does in each step."""

    def __init__(self, config: Config) -> None:
        """Takes a configuration whose section is valid."""
        super().__init__(config)
        self._preheat = Preheat(self._settings) if self._settings.if_preheat else None
        self._names = _names(config)
        self._mode: Optional[_Mode] = None

    def _watch(self) -> None:
        self._mode = _Mode(self)
        self._mode.__enter__()

    def _leave(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def _new_rows(self, directory: str, step: int) -> Rows:
        return Rows(os.path.join(directory, "free_benchmark.csv"), self._settings, step, _rank())

    def _described(self, result: Any) -> tuple[Any, Any]:
        return (result.dtype, result.shape) if isinstance(result, torch.Tensor) else (None, None)

    def called(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Makes a call of the script and, where it is chosen, the changed one. Returns what the script gets."""
        place = self._names.get(function)
        if place is None:
            return function(*args, **kwargs)
        name = f"{place}.{self._counts[place]}.{self._settings.fuzz_stage}"
        self._counts[place] += 1
        if not self._wants(name):
            return function(*args, **kwargs)
        self._calls += 1
        call = Call(name, function, args, kwargs)
        result = function(*args, **kwargs)
        if self._settings.fuzz_stage == BACKWARD:
            self._guarded(
                name, call.pure_name, lambda: GradientCheck(call, self._settings, self._differs).watch(args, result)
            )
            return result
        fixed = self._guarded(name, call.pure_name, lambda: self._checked(call, result))
        return result if fixed is None else fixed

    def _checked(self, call: Call, result: Any) -> Any:
        """Returns what takes the place of the result; None: nothing does."""
        if first_input(TENSORS, call.args) < 0:
            return None
        changed = perturbed(self._settings.pert_mode, _copied(call.args), _copied(call.kwargs))
        if changed is None:
            return None
        other = call.again(*changed)
        if self._settings.handler_type == FIX:
            return _fixed(result, other)
        if not is_floating(other):
            return None
        if self._preheat is not None:
            self._heat(call, result, other)
        elif self._settings.pert_mode == TO_CPU:
            if not agrees(_copied(result), other):
                self._differs(call.name, Difference(None, None, result))
        else:
            limits = (lambda dtype: 1.0) if self._settings.pert_mode == NO_CHANGE else threshold_of
            for difference in compare(_detached(result), other, limits)[0]:
                self._differs(call.name, difference)
        return None

    def _heat(self, call: Call, result: Any, other: Any) -> None:
        heat, name = self._preheat, call.pure_name
        if heat.counts(name, self._step):
            return
        found, largest = compare(_detached(result), other, lambda dtype: heat.threshold(name, dtype))
        for difference in found:
            self._differs(call.name, difference)
        if not heat.wants_sample(name, self._step):
            return
        on_cpu = perturbed(TO_CPU, _copied(call.args), _copied(call.kwargs))
        confirmed = agrees(_copied(result), call.again(*on_cpu))
        first = result if isinstance(result, torch.Tensor) else next(t for t in result if isinstance(t, torch.Tensor))
        heat.take(name, first.dtype, largest, confirmed)


def _detached(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor.detach())


def _fixed(ours: Any, other: Any) -> Any:
    """Puts the values of the changed call into the result of the script, whose graph stays."""
    if isinstance(ours, torch.Tensor) and isinstance(other, torch.Tensor):
        if ours.shape != other.shape:
            raise ValueError("the changed call gives another shape")
        ours.data = other.to(ours.dtype).to(ours.device)
        return ours
    if isinstance(ours, dict) and isinstance(other, dict):
        return {key: _fixed(part, other[key]) for key, part in ours.items()}
    if isinstance(ours, (list, tuple)) and isinstance(other, (list, tuple)) and len(ours) == len(other):
        parts = [_fixed(a, b) for a, b in zip(ours, other)]
        return ours if hasattr(ours, "_fields") or type(ours) not in (list, tuple) else type(ours)(parts)
    raise TypeError(f"a result of type {type(ours).__name__} cannot be replaced")


def _names(config: Config) -> dict:
    """{function: `Functional.linear`}."""
    found = {}
    for api in hooked_apis(torch, config.custom_apis, config.exclude_apis):
        if api.prefix not in ("Distributed", "Jit"):
            found.setdefault(getattr(api.owner, api.attr), f"{api.prefix}.{api.name}")
    return found


def _rank() -> Any:
    distributed = distributed_module()
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0

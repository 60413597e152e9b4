"""Where Megatron-LM, DeepSpeed and plain optimizers keep gradients, and when their steps begin and end."""

import contextlib
import functools
import gc
import importlib
import sys
from collections.abc import Iterator
from typing import Any, Optional

import torch

from ..._capture.guard import shielded
from .places import valid_range


def name_of(roots: list) -> str:
    """Returns which program trains: for the certificate."""
    if any(type(root).__name__ == "DeepSpeedEngine" for root in roots):
        return "DeepSpeed"
    return "Megatron-LM" if "megatron.core.optimizer" in sys.modules else "PyTorch"


def watch(client: Any) -> None:
    """Tells the client when optimizers step. Engines are imported after this, so their classes are taken when they are first used."""
    optimizers = importlib.import_module("torch.optim.optimizer")

    def before(optimizer: Any, args: tuple, kwargs: dict) -> None:
        client.before_step(optimizer)

    optimizers.register_optimizer_step_pre_hook(shielded(before))
    _when_imported("megatron.core.optimizer.optimizer", functools.partial(_watch_megatron, client))
    _when_imported("deepspeed.runtime.engine", functools.partial(_watch_deepspeed, client))


class _Finder:
    """Calls a function once a module has been imported."""

    def __init__(self, name: str, then: Any):
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._then(module)

        spec.loader.exec_module = exec_module
        return spec


def _when_imported(name: str, then: Any) -> None:
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def _around(kind: type, name: str, wrapper: Any) -> None:
    """Puts `wrapper(original, self, ...)` in the place of a method that the class itself has."""
    original = vars(kind).get(name)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(original, self, *args, **kwargs)

    setattr(kind, name, method)


def _watch_megatron(client: Any, module: Any) -> None:
    running: list = []

    def step(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if running:
            return original(self, *args, **kwargs)
        running.append(self)
        client.within(self)
        client.before_reduction_is_used(self)
        try:
            result = original(self, *args, **kwargs)
        finally:
            running.pop()
        limit = getattr(getattr(self, "config", None), "clip_grad", None) or 0
        if isinstance(result, tuple) and len(result) > 1 and result[1] is not None and limit > 0:
            client.clipped(result[1], limit)
        client.within(None)
        return result

    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            _around(value, "step", step)


def _watch_deepspeed(client: Any, module: Any) -> None:
    def step(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_gradient_accumulation_boundary():
            return original(self, *args, **kwargs)
        client.within(self)
        client.before_reduction_is_used(self)
        result = original(self, *args, **kwargs)

        def clipping() -> None:
            norm = self.get_global_grad_norm()
            if norm is not None and self.gradient_clipping() > 0:
                client.clipped(norm, self.gradient_clipping())

        client.unseen(clipping)
        client.within(None)
        return result

    _around(module.DeepSpeedEngine, "step", step)


# ---- gradients and parameters


def gradient_of(parameter: Any, engine: Any) -> tuple:
    """Returns the gradient of a parameter and what more is known of it; None without one."""
    if type(engine).__name__ == "DeepSpeedEngine":
        tensors = importlib.import_module("deepspeed.utils")
        gradient = tensors.safe_get_full_grad(parameter)
        return (None, {}) if gradient is None else (gradient, {})
    if engine is not None and getattr(parameter, "main_grad", None) is not None:
        held = valid_range(parameter, engine)
        return parameter.main_grad, {"valid": held} if held is not None else {}
    return parameter.grad, {}


@contextlib.contextmanager
def whole_parameter(parameter: Any) -> Iterator[torch.Tensor]:
    """Gives the parameter, gathered where ZeRO 3 has released it."""
    if not hasattr(parameter, "ds_id"):
        yield parameter
        return
    zero = importlib.import_module("deepspeed").zero
    with zero.GatheredParameters([parameter]):
        yield parameter


def plain_optimizers(roots: list) -> list:
    """Lists the optimizers of PyTorch that step parameters of the models themselves."""
    own = {id(parameter) for root in roots for parameter in root.parameters()}
    found = []
    for value in gc.get_objects():
        if issubclass(type(value), torch.optim.Optimizer) and getattr(value, "param_groups", None):
            if isinstance(getattr(value, "optimizer", None), torch.optim.Optimizer):
                continue
            if any(id(p) in own for group in value.param_groups for p in group["params"]):
                found.append(value)
    return found


def reload_parameters(roots: list) -> Optional[str]:
    """Lets optimizers that keep copies of the parameters copy them again; returns what cannot be done."""
    if "megatron.core.optimizer.optimizer" in sys.modules:
        kind = sys.modules["megatron.core.optimizer.optimizer"].MegatronOptimizer
        for value in gc.get_objects():
            if issubclass(type(value), kind) and not hasattr(value, "chained_optimizers"):
                value.reload_model_params()
    for root in roots:
        if type(root).__name__ == "DeepSpeedEngine":
            refresh = getattr(root.optimizer, "refresh_fp32_params", None)
            if refresh is None:
                return "DeepSpeed keeps copies of the weights that were not given anew"
            refresh()
    return None

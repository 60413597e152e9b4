"""The variables of a running program: what its functions on the stack and its modules hold, and under which names."""

import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any, Optional

import torch

from .forward_call import is_users_module, users_frames
from .leaves import generator_state

_MOST_OBJECTS = 20_000
_MOST_ITEMS = 200
_DEEPEST = 5
_NEVER = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)


class Variables:
    """Looks at the variables once. Those that hold batches and models are left out of values()."""

    def __init__(self, batch: set, roots: list):
        self._batch = batch
        self._of_models = {id(part) for root in roots for part in root.modules()}
        self._of_models |= {id(parameter) for root in roots for parameter in root.parameters()}
        self._own: list = [(name, value) for name, value in _bindings() if not name.rpartition(".")[2].startswith("__")]
        self._names: dict = {}
        self._found_generators: dict = {}
        self._walk()

    def name_of(self, value: Any) -> Optional[str]:
        """Returns the variable that leads to an object, such as `ema.model`; None if there is none."""
        return self._names.get(id(value))

    def generators(self) -> list:
        """Lists the generators of random numbers that variables lead to, with their names."""
        return list(self._found_generators.values())

    def values(self) -> Iterator[tuple]:
        """Yields the variables that may be state of their own."""
        for name, value in self._own:
            if not isinstance(value, _NEVER) and not self.skips(value) and generator_state(value) is None:
                yield name, value

    def skips(self, value: Any) -> bool:
        """Tells whether a value is known to be none: a batch, or of a model."""
        if id(value) in self._of_models:
            return True
        if not isinstance(value, torch.Tensor):
            return isinstance(value, torch.nn.Module)
        if value.requires_grad and value.grad_fn is not None:
            return True  # the graph of the step before
        return value.layout is torch.strided and value.untyped_storage().data_ptr() in self._batch

    def _walk(self) -> None:
        queue = deque((name, value, 0) for name, value in self._own)
        while queue and len(self._names) < _MOST_OBJECTS:
            name, value, deep = queue.popleft()
            if id(value) in self._names or isinstance(value, (*_NEVER, torch.Tensor, str, bytes, int, float)):
                continue
            self._names[id(value)] = name
            if generator_state(value) is not None:
                self._found_generators[id(value)] = (value, name)
                continue
            if deep < _DEEPEST:
                queue.extend((f"{name}.{key}", part, deep + 1) for key, part in _parts(value))


def _parts(value: Any) -> list:
    if isinstance(value, dict):
        return [(key, value[key]) for key in list(value)[:_MOST_ITEMS] if isinstance(key, (str, int))]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value[:_MOST_ITEMS]))
    attributes = getattr(value, "__dict__", None)
    return list(attributes.items())[:_MOST_ITEMS] if isinstance(attributes, dict) else []


def _bindings() -> Iterator[tuple]:
    """Yields names and values: of the functions on the stack as `function.name`, of the main module as `name`."""
    for frame in users_frames():
        if frame.f_code.co_name != "<module>":
            for name, value in list(frame.f_locals.items()):
                yield f"{frame.f_code.co_name}.{name}", value
    for module in [name for name in list(sys.modules) if is_users_module(name) and name != "sitecustomize"]:
        short = "" if module == "__main__" else f"{module}."
        for name, value in list(vars(sys.modules[module]).items()):
            yield short + name, value

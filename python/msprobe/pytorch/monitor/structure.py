"""print_struct and stack_info: what goes through the modules of a model, and where they are called."""

import csv
import functools
import io
import json
import os
import traceback
from collections.abc import Callable
from typing import Any

import torch

from ..._capture.files import write_file
from ..._capture.log import logger
from ..hook_points import HookSet


class StructureWatch:
    """Sizes and types of inputs, outputs and their gradients, for module_struct.json."""

    def __init__(self, directory: str) -> None:
        """Begins with nothing.

        Args:
            directory: Of the file.
        """
        self._path = os.path.join(directory, "module_struct.json")
        self._found: dict = {}
        self._hooks = HookSet()

    def add(self, module: torch.nn.Module, name: str) -> None:
        """Hooks a module."""
        self._hooks.after(module, functools.partial(self._after, name), kwargs=True)

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()

    @property
    def is_known(self) -> bool:
        """Whether a module has run."""
        return bool(self._found)

    def write(self) -> None:
        """Writes module_struct.json."""
        write_file(self._path, json.dumps(self._found, indent=2).encode())
        logger.info("monitor: the structure of the model is in %s", self._path)

    def _after(self, name: str, module: torch.nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        if not module.training or name in self._found:
            return
        inputs = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)]
        entry = self._found[name] = {"input": _sizes(inputs), "output": _sizes(output)}
        for side, tensors in (("input_grad", args), ("output_grad", output)):
            tensors = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
            grads = [t if isinstance(t, torch.Tensor) and t.requires_grad else None for t in tensors]
            entry[side] = _sizes(tuple(grads))


def _sizes(value: Any) -> dict:
    if isinstance(value, (list, tuple)):
        sizes = {str(i): _size(item) for i, item in enumerate(value)}
        return {"config": f"{type(value).__name__}[{len(value)}]", **sizes}
    if isinstance(value, torch.Tensor):
        return {"config": "tensor", "tensor": _size(value)}
    return {"config": f"{type(value)}"}


def _size(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"size={tuple(value.shape)}, dtype={value.dtype}"
    return f"{type(value)}"


class StackWatch:
    """Where modules are called, for stack_info.csv."""

    def __init__(self, directory: str) -> None:
        """Begins with nothing.

        Args:
            directory: Of the file.
        """
        self._path = os.path.join(directory, "stack_info.csv")
        self._stacks: dict = {}
        self._hooks = HookSet()

    def add(self, module: torch.nn.Module, name: str) -> None:
        """Hooks a module."""
        self._hooks.after(module, self._hook(name))

    def _hook(self, name: str) -> Callable:
        def after(*_: Any) -> None:
            if name not in self._stacks:
                frames = reversed(traceback.extract_stack()[:-1])
                own = [f for f in frames if "/msprobe/" not in f.filename]
                lines = [f"File {f.filename}, line {f.lineno}, in {f.name}, \n {f.line}" for f in own]
                self._stacks[name] = "\n".join(lines)

        return after

    def write(self) -> None:
        """Writes the file, if it is not there yet, and ends."""
        self.remove()
        if os.path.exists(self._path):
            return
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([("module_name", "stack_info"), *self._stacks.items()])
        write_file(self._path, text.getvalue().encode())

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()

"""load: modules get the inputs of an earlier dump instead of those the model has for them."""

import glob
import os
import pickle
import re
from collections.abc import Iterable
from typing import Any, Optional

import torch

from .. import _core
from .._capture.config import Load
from .._capture.log import logger

_NUMBER = re.compile(r"(?P<base>Module\..+)\.forward\.(?P<number>\d+)")


class InputLoader:
    """Replaces inputs between begin() and end(), in the steps that the configuration names."""

    def __init__(self, config: Load) -> None:
        self._config = config
        self._wanted: dict = {}  # base name of a module -> numbers of its calls
        for name in config.modules:
            match = _NUMBER.fullmatch(name)
            self._wanted.setdefault(match["base"], set()).add(int(match["number"]))
        self._hooked: set = set()
        self._calls: dict = {}
        self._replaced: set = set()
        self._directory: Optional[str] = None  # while it works

    def add_modules(self, named: Iterable[tuple[str, torch.nn.Module]]) -> None:
        """Hooks those of the (name, module) pairs whose inputs are to be replaced, and warns of missing ones."""
        for base, module in named:
            if base in self._wanted and base not in self._hooked:
                self._hooked.add(base)
                module.register_forward_pre_hook(_Replace(self, base), prepend=True, with_kwargs=True)
        for base in sorted(self._wanted.keys() - self._hooked):
            logger.warning("load: the model has no module %s; its inputs are not replaced.", base)

    def begin(self, step: int, rank: Optional[int]) -> bool:
        """Starts replacing, if this step and rank are wanted; tells whether they are."""
        config = self._config
        wanted = (not config.step or step in config.step) and (not config.rank or rank in config.rank)
        self._directory = _tensor_directory(config.path, step, rank) if wanted else None
        return self._directory is not None

    def end(self) -> None:
        """Stops replacing."""
        self._directory = None

    def end_step(self) -> None:
        """Warns of what was not replaced, and resets the call counters."""
        missed = sorted(set(self._config.modules) - self._replaced)
        if self._calls and missed:
            logger.warning("load: these calls did not happen or had no input that fits: %s", ", ".join(missed))
        self._calls.clear()
        self._replaced.clear()

    def replace(self, base: str, args: tuple, kwargs: dict) -> Any:
        """Returns the (args, kwargs) to call a module with, or None for its own."""
        if self._directory is None:
            return None
        number = self._calls.get(base, 0)
        self._calls[base] = number + 1
        if number not in self._wanted[base]:
            return None
        name = f"{base}.forward.{number}"
        return _core.run_unseen(lambda: self._inputs(name, args, kwargs))

    def _inputs(self, name: str, args: tuple, kwargs: dict) -> tuple:
        new_args = tuple(self._loaded(name, f"input.{i}", value) for i, value in enumerate(args))
        new_kwargs = {key: self._loaded(name, f"kwargs.{key}", value) for key, value in kwargs.items()}
        return new_args, new_kwargs

    def _loaded(self, name: str, place: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        path = os.path.join(self._directory, f"{name}.{place}.pt")
        try:
            found = torch.load(path, map_location=value.device, weights_only=True)
        except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            logger.warning("load: %s is not used, the input stays as it is: %s", path, _first_line(error))
            return value
        if not isinstance(found, torch.Tensor) or found.shape != value.shape or found.dtype != value.dtype:
            logger.warning("load: %s holds %s, the input is %s and stays as it is.", path, _kind(found), _kind(value))
            return value
        self._replaced.add(name)
        return found.requires_grad_(value.requires_grad)


class _Replace:
    """A hook that a copy of the model may have, too: there it does nothing."""

    def __init__(self, loader: Optional[InputLoader] = None, base: str = "") -> None:
        self._loader = loader
        self._base = base

    def __call__(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> Any:
        return self._loader.replace(self._base, args, kwargs) if self._loader is not None else None

    def __reduce__(self) -> tuple:
        return _Replace, ()


def _tensor_directory(root: str, step: int, rank: Optional[int]) -> Optional[str]:
    below = os.path.join(root, f"step{step}")
    if rank is not None:
        candidates = [os.path.join(below, f"rank{rank}")]
    else:
        numbered = sorted(glob.glob(os.path.join(glob.escape(below), "proc*")))
        candidates = [os.path.join(below, "rank"), *numbered, os.path.join(below, "rank0")]
    for candidate in candidates:
        directory = os.path.join(candidate, "dump_tensor_data")
        if os.path.isdir(directory):
            return directory
    logger.warning("load: there is no dump_tensor_data for step %d below %s; no input is replaced.", step, below)
    return None


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {list(value.shape)}"
    return f"a {type(value).__name__}"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]

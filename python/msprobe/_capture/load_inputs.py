"""load: modules get the inputs of an earlier dump instead of those the model has for them."""

import glob
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Optional

from .. import _core
from .config import Load
from .log import logger
from .words import say

_NUMBER = re.compile(r"(?P<base>(Module|Cell)\..+)\.forward\.(?P<number>\d+)")
LOADED = "msprobe_loaded.json"  # beside the dump of a step with replaced inputs: which they are


class InputLoader(ABC):
    """Replaces inputs between begin() and end(), in the steps that the configuration names."""

    tensor_type: Any  # of the framework

    def __init__(self, config: Load) -> None:
        self._config = config
        self._wanted: dict = {}  # base name of a module -> numbers of its calls
        for name in config.modules:
            match = _NUMBER.fullmatch(name)
            self._wanted.setdefault(match["base"], set()).add(int(match["number"]))
        self._hooked: set = set()
        self._calls: dict = {}
        self._replaced: dict = {}  # name of a call -> places of the inputs that were replaced
        self._directory: Optional[str] = None  # while it works

    @abstractmethod
    def hook(self, base: str, module: Any) -> None:
        """Has replace() called before each call of a module, ahead of all other hooks."""

    @abstractmethod
    def read(self, path: str, like: Any) -> Any:
        """Returns the tensor of a file, on the device of `like`.

        Raises:
            ValueError: It does not fit `like`, or is no tensor.
            OSError: It cannot be read.
        """

    def add_modules(self, named: Iterable[tuple[str, Any]]) -> None:
        """Hooks those of the (name, module) pairs whose inputs are to be replaced, and warns of missing ones."""
        for base, module in named:
            if base in self._wanted and base not in self._hooked:
                self._hooked.add(base)
                self.hook(base, module)
        for base in sorted(self._wanted.keys() - self._hooked):
            logger.warning(say("load: the model has no module %(name)s; its inputs are not replaced.", name=base))

    def begin(self, step: int, rank: Optional[int]) -> bool:
        """Starts replacing, if this step and rank are wanted; tells whether they are."""
        config = self._config
        wanted = (not config.step or step in config.step) and (not config.rank or rank in config.rank)
        self._directory = _tensor_directory(config.path, step, rank) if wanted else None
        return self._directory is not None

    def end(self) -> None:
        """Stops replacing."""
        self._directory = None

    def end_step(self, directory: Optional[str]) -> None:
        """Warns of what was not replaced, resets the call counters, and leaves a note in the dump of the step."""
        missed = sorted(set(self._config.modules) - self._replaced.keys())
        if self._calls and missed:
            text = "load: these calls did not happen or had no input that fits: %(names)s"
            logger.warning(say(text, names=", ".join(missed)))
        if self._calls and directory is not None and os.path.isdir(directory):
            note = {"path": self._config.path, "calls": {name: sorted(p) for name, p in self._replaced.items()}}
            try:
                with open(os.path.join(directory, LOADED), "w", encoding="utf-8") as file:
                    json.dump(note, file, indent=1)
            except OSError as error:
                logger.warning(say("load: %(name)s cannot be written: %(why)s", name=LOADED, why=error))
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
        if not isinstance(value, self.tensor_type):
            return value
        stem = os.path.join(self._directory, f"{name}.{place}")
        path = stem + (".npy" if os.path.exists(stem + ".npy") else ".pt")
        try:
            found = self.read(path, value)
        except (OSError, ValueError) as error:
            text = "load: %(path)s is not used, the input stays as it is: %(why)s"
            logger.warning(say(text, path=path, why=str(error).split("\n", 1)[0]))
            return value
        self._replaced.setdefault(name, set()).add(place)
        return found


def refuse_other(path: str, found: str, value: str) -> None:
    """Raises ValueError for a file that holds something else than what the module gets."""
    text = "%(name)s holds %(found)s, the input is %(value)s"
    raise ValueError(say(text, name=os.path.basename(path), found=found, value=value))


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
    text = "load: there is no dump_tensor_data for step %(step)s below %(path)s; no input is replaced."
    logger.warning(say(text, step=step, path=below))
    return None

"""ConfigChecker: packs what a training computes with, for `msprobe config_check -c`."""

from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from typing import Any, Callable

from msprobe._environment import find_command

from . import frameworks, random_calls
from .pack_file import PackFile

logger = logging.getLogger("msprobe")

_DEEPEST = 100  # nested arguments
# What Megatron's get_args() gave, once it was called.
_arguments: list[Any] = []


def _watch_megatron() -> None:
    """Keeps what get_args() returns; without Megatron nothing happens."""
    try:
        training = importlib.import_module("megatron.training")
    except ImportError:
        return
    original = getattr(training, "get_args", None)
    if original is None or getattr(original, "__msprobe_watched__", False):
        return

    def get_args(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not _arguments:
            _arguments.append(result)
        return result

    get_args.__msprobe_watched__ = True
    training.get_args = get_args


class ConfigChecker:
    """Packs environment, packages, hyperparameters, data, weights and calls of random functions into a zip file.

    Two such files, of two trainings, are compared by `msprobe config_check -c BENCH.zip CMP.zip`. Secrets stay out of
    them: of the environment only variables that concern a training are kept, and values that look like keys are hidden.

        ConfigChecker.apply_patches()                      # first thing in the script
        model = ...
        ConfigChecker(model, output_zip_path="bench.zip")  # once the model is built
    """

    @staticmethod
    def apply_patches(fmk: str = "pytorch") -> None:
        """Counts calls of random functions from here on, and watches for the arguments of Megatron.

        Args:
            fmk: `pytorch` or `mindspore`.

        Raises:
            ValueError: Another framework is named.
        """
        side = frameworks.side_of(fmk)
        random_calls.replace_common()
        side.count_random_calls()
        if fmk == "pytorch":
            _watch_megatron()

    def __init__(
        self,
        model: Any = None,
        shell_path: str | list[str] | None = None,
        output_zip_path: str = "./config_check_pack.zip",
        fmk: str = "pytorch",
    ) -> None:
        """Packs what is known now, and with a model its inputs and weights before each forward.

        Args:
            model: A `torch.nn.Module` or `mindspore.nn.Cell`, or a list that begins with one. Without it, data, weights
                and random calls are not packed.
            shell_path: Launch scripts, yaml or json files with the hyperparameters.
            output_zip_path: The zip file; each rank adds to the same one.
            fmk: `pytorch` or `mindspore`.

        Raises:
            ValueError: An argument is invalid, or a file of `shell_path` cannot be read.
            OSError: The zip file cannot be written.
        """
        self._file = PackFile(output_zip_path)
        if isinstance(model, (list, tuple)):
            model = model[0] if model else None
        self._side = frameworks.side_of(fmk) if model is not None else None
        if model is not None and not self._side.is_model(model):
            kind = "torch.nn.Module" if fmk == "pytorch" else "mindspore.nn.Cell"
            raise ValueError(f"model must be a {kind}, not {type(model).__name__}")
        self._step = 0
        self._random_done = False
        self._remove: Callable[[], None] | None = None
        rank = self._side.rank() if self._side else 0
        if rank == 0:
            self._file.drop_earlier(alone=self._side is None or self._side.alone())
            paths = [shell_path] if isinstance(shell_path, str) else list(shell_path or [])
            self._file.add(self._static([path for path in paths if path]))
        if model is not None:
            self._remove = self._side.on_forward(model, lambda args, kwargs: self._before(model, args, kwargs))

    @staticmethod
    def compare(bench_zip_path: str, cmp_zip_path: str, output_path: str) -> None:
        """Compares two packs: `msprobe config_check -c`.

        Args:
            bench_zip_path: The pack of the reference.
            cmp_zip_path: The other one.
            output_path: Directory of result.xlsx and of the unpacked files.

        Raises:
            ValueError: A pack cannot be read, or the directory not be written.
        """
        _command("-c", bench_zip_path, cmp_zip_path, "-o", output_path)

    def _static(self, paths: list[str]) -> dict[str, str | bytes]:
        """The members that the command packs of this environment and of the files."""
        with tempfile.TemporaryDirectory(prefix="msprobe_config_") as folder:
            path = os.path.join(folder, "static.zip")
            _command("-d", *paths, "-o", path)
            with zipfile.ZipFile(path) as archive:
                return {name: archive.read(name) for name in archive.namelist()}

    def _before(self, model: Any, args: tuple, kwargs: dict) -> None:
        """What is packed before a forward; whatever goes wrong there ends the packing and not the training."""
        try:
            self._pack_step(model, args, kwargs)
        except (ArithmeticError, AttributeError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
            logger.warning("config_check: step %d could not be packed (%s); no more steps are.", self._step, error)
            if self._remove:
                self._remove()

    def _pack_step(self, model: Any, args: tuple, kwargs: dict) -> None:
        rank = self._side.rank()
        place = f"step{self._step}/rank{rank}"
        data = {"args": self._described(args, 0), "kwargs": self._described(kwargs, 0)}
        weights = {name: self._side.features(value) for name, value in self._side.parameters(model)}
        members: dict[str, str | bytes] = {
            f"dataset/{place}/dataset.json": json.dumps(data, indent=4),
            f"weights/{place}/weight.json": json.dumps({k: v for k, v in weights.items() if v is not None}, indent=4),
        }
        if not self._random_done:
            members[f"random/rank{rank}.json"] = json.dumps(random_calls.taken(), indent=4)
            if _arguments and rank == 0:
                members["hyperparameters/hyperparameters_dynamic.json"] = _plain_arguments(_arguments[0])
            self._random_done = True
        self._file.add(members)
        self._step += 1

    def _described(self, value: Any, depth: int) -> Any:
        """Features of tensors, lists and dicts as dicts, "" for anything else."""
        if self._side.is_tensor(value):
            return self._side.features(value) or ""
        if depth > _DEEPEST:
            return ""
        if isinstance(value, (list, tuple)):
            return {str(i): self._described(item, depth + 1) for i, item in enumerate(value)}
        if isinstance(value, dict):
            return {str(key): self._described(item, depth + 1) for key, item in value.items()}
        return ""


def _plain_arguments(arguments: Any) -> str:
    """The namespace as JSON, what JSON does not have as null; secrets are hidden as the command hides them."""
    text = json.dumps({str(k): v for k, v in vars(arguments).items()}, default=lambda _: None, indent=4)
    with tempfile.TemporaryDirectory(prefix="msprobe_config_") as folder:
        given, packed = os.path.join(folder, "arguments.json"), os.path.join(folder, "arguments.zip")
        with open(given, "w", encoding="utf-8") as file:
            file.write(text)
        _command("-d", given, "-o", packed)
        with zipfile.ZipFile(packed) as archive:
            return archive.read("hyperparameters/hyperparameters_static.json").decode("utf-8")


def _command(*arguments: str) -> None:
    command = os.environ.get("MSPROBE_BIN") or find_command()
    if command is None:
        raise OSError("this installation has no command msprobe: install the package again")
    done = subprocess.run(
        [command, "config_check", "--json", *map(os.fspath, arguments)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={"MSPROBE_PYTHON": sys.executable, **os.environ},
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ValueError((said[-1] if said else f"config_check ended with {done.returncode}").partition("error: ")[2])

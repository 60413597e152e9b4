"""Task grad_probe: a table of the gradients of all parameters at each optimizer step, and the signs of their elements."""

import csv
import importlib
import io
import os
import zlib
from collections.abc import Iterator
from typing import Any, Optional

import torch

from .. import _core
from .._capture.config import Config
from .._capture.files import write_file
from .._capture.log import logger
from .npy import bytes_of, npy_header


class GradProbe:
    """Takes the gradients right before an optimizer uses them. Steps are those of the optimizers, counted from 0."""

    def __init__(self, config: Config, before: Optional["GradProbe"] = None) -> None:
        """Continues the step count of `before`, if there is one."""
        self._level = config.grad_level
        self._parts = config.param_list
        self._bounds = config.bounds
        self._config = config
        self._names: dict = {}  # id of a parameter -> (name, parameter)
        self._step = before._step if before is not None else 0
        self._hook: Any = None

    def monitor(self, models: Any) -> None:
        """Adds the parameters of these models."""
        several = isinstance(models, (list, tuple))
        for index, model in enumerate(models if several else [models]):
            for name, parameter in model.named_parameters():
                full = f"{index}.{name}" if several else name
                if not self._parts or any(part in full for part in self._parts):
                    self._names[id(parameter)] = (full, parameter)
        if self._hook is None:
            optimizer = importlib.import_module("torch.optim.optimizer")
            self._hook = optimizer.register_optimizer_step_pre_hook(self._before_step)

    def close(self) -> None:
        """Removes the hook, before another configuration takes over."""
        if self._hook is not None:
            self._hook.remove()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._ended():
            return
        own = [p for group in optimizer.param_groups for p in group["params"] if id(p) in self._names]
        if not own:
            return
        step, self._step = self._step, self._step + 1
        rank = torch.distributed.get_rank() if _distributed() else 0
        config = self._config
        if (config.step and step not in config.step) or (config.rank and rank not in config.rank):
            return
        try:
            _core.run_unseen(lambda: self._write(own, step, os.path.join(config.dump_path, f"rank{rank}")))
        except (OSError, RuntimeError, TypeError, MemoryError) as error:  # the training goes on
            logger.error("grad_probe: step %d is not recorded: %s", step, error)

    def _ended(self) -> bool:
        return bool(self._config.step) and self._step > max(self._config.step)

    def _write(self, parameters: list, step: int, directory: str) -> None:
        rows = []
        with torch.no_grad():
            for parameter in parameters:
                gradient = getattr(parameter, "main_grad", None)
                gradient = parameter.grad if gradient is None else gradient
                if gradient is not None:
                    rows.append(self._row(self._names[id(parameter)][0], _plain(gradient), step, directory))
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self._header(), *rows])
        write_file(os.path.join(directory, f"grad_summary_{step}.csv"), text.getvalue().encode("utf-8-sig"))

    def _header(self) -> list:
        middle = {"L0": ["MD5"], "L1": [], "L2": self._intervals()}[self._level]
        return ["param_name", *middle, "max", "min", "norm", "shape"]

    def _intervals(self) -> list:
        bounds = self._bounds
        inner = [f"({a}, {b}]" for a, b in zip(bounds, bounds[1:])]
        return [f"(-inf, {bounds[0]}]", *inner, f"({bounds[-1]}, inf)", "=0"]

    def _row(self, name: str, gradient: torch.Tensor, step: int, directory: str) -> list:
        middle: list = []
        if self._level == "L0":
            middle = [f"{zlib.crc32(bytes_of(gradient.float())):08x}"]  # what mindstudio-probe 8.1.1 calls MD5
        elif self._level == "L2":
            middle = list(self._shares(gradient))
        if self._level != "L0":
            signs = gradient > 0
            path = os.path.join(directory, f"step{step}", f"{name.replace('/', '_')}.npy")
            write_file(path, npy_header(signs.shape, "|b1"), bytes_of(signs))
        numbers = _core.statistics_of(gradient)
        return [name, *middle, numbers[0], numbers[1], numbers[3], list(gradient.shape)]

    def _shares(self, gradient: torch.Tensor) -> Iterator[float]:
        """Yields the share of elements in each interval, then that of zeros."""
        count = max(gradient.numel(), 1)
        bounds = torch.tensor(self._bounds, dtype=gradient.dtype)
        places = torch.bucketize(gradient.flatten(), bounds)
        yield from (n / count for n in torch.bincount(places, minlength=len(self._bounds) + 1).tolist())
        yield int((gradient == 0).sum()) / count


def _distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _plain(gradient: torch.Tensor) -> torch.Tensor:
    gradient = gradient.detach()
    local = getattr(gradient, "to_local", None)  # DTensor: this rank's shard
    gradient = local() if local is not None else gradient
    if gradient.layout is not torch.strided:
        gradient = gradient.to_dense()
    gradient = gradient.cpu().contiguous()
    return gradient if gradient.dtype in (torch.float32, torch.float64) else gradient.float()

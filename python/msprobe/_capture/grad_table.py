"""The files of task grad_probe: a table of gradients for each optimizer step, and the signs of their elements."""

import csv
import io
import os
from collections.abc import Callable, Iterable
from typing import Any, Optional

from .config import Config
from .files import write_file
from .log import logger


class Gradient:
    """What a framework has to say of a gradient; it is asked only for what the level needs."""

    name = ""
    shape: Iterable = ()

    def summary(self) -> tuple:
        """Returns (max, min, L2 norm)."""
        raise NotImplementedError

    def checksum(self) -> int:
        """Returns the CRC-32 of its elements as float32."""
        raise NotImplementedError

    def counts(self, bounds: list) -> list:
        """Returns how many elements lie in each interval that the bounds make, the upper end in it, then the zeros."""
        raise NotImplementedError

    def signs(self) -> list:
        """Returns the parts of a .npy file that says of each element whether it is above zero."""
        raise NotImplementedError


class GradTable:
    """Counts the steps of the optimizers from 0 and writes those that the configuration asks for."""

    def __init__(self, config: Config, before: Optional["GradTable"] = None) -> None:
        """Continues the step count of `before`, if there is one."""
        self._level = config.grad_level
        self._parts = config.param_list
        self._bounds = config.bounds
        self._config = config
        self._step = before._step if before is not None else 0

    def wants(self, name: str) -> bool:
        """Whether a parameter is listed."""
        return not self._parts or any(part in name for part in self._parts)

    @property
    def ended(self) -> bool:
        """Whether no step is left that is asked for."""
        return bool(self._config.step) and self._step > max(self._config.step)

    def take(self, rank: int, gradients: Callable[[], Iterable], unseen: Callable, faults: tuple) -> None:
        """An optimizer is about to step.

        Args:
            rank: Of this process.
            gradients: Gives a Gradient for each parameter that has one.
            unseen: Calls a function whose calls are not recorded.
            faults: What reading a gradient may raise; the training goes on.
        """
        step, self._step = self._step, self._step + 1
        config = self._config
        if (config.step and step not in config.step) or (config.rank and rank not in config.rank):
            return
        try:
            unseen(lambda: self._write(gradients(), step, os.path.join(config.dump_path, f"rank{rank}")))
        except faults as error:
            logger.error("grad_probe: step %d is not recorded: %s", step, error)

    def _write(self, gradients: Iterable, step: int, directory: str) -> None:
        rows = [self._row(gradient, step, directory) for gradient in gradients]
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

    def _row(self, gradient: Any, step: int, directory: str) -> list:
        middle: list = []
        shape = list(gradient.shape)
        if self._level == "L0":
            middle = [f"{gradient.checksum():08x}"]  # what mindstudio-probe 8.1.1 calls MD5
        elif self._level == "L2":
            counts = gradient.counts(self._bounds)
            middle = [count / max(sum(counts[:-1]), 1) for count in counts]
        if self._level != "L0":
            path = os.path.join(directory, f"step{step}", f"{gradient.name.replace('/', '_')}.npy")
            write_file(path, *gradient.signs())
        return [gradient.name, *middle, *gradient.summary(), shape]

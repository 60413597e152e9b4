"""`msprobe estimate`: how long the steps of a script take without capture and with each kind of it, and what one of them holds.

Kinds take turns, one step each and bare ones between, so that a machine that slows down slows all of them. What they write is
removed in the end, as long as there is space: memory and blocks of files just removed are faster to write than those a real run gets.
"""

import dataclasses
import logging
import os
import shutil
import time
from typing import Any, NamedTuple, Optional

import torch

from .._capture.budget import bytes_in
from .._capture.config import Config
from .._capture.log import logger
from ..pytorch import hooks
from ..pytorch.debugger import PrecisionDebugger
from .client import Client
from .ending import Finished, rank_name, write_result
from .request import Request

ALL = "all"
_TASKS = ("structure", "statistics", "md5", "tensor")
_LEVELS = ("L0", "L1", "mix")
_DEFAULT_ROUNDS = 3
_SHARE = 0.1


class Kind(NamedTuple):
    """One way to capture. Task `md5` stands for statistics with checksums."""

    task: str
    level: str

    def config(self, base: Config, directory: str) -> Config:
        """Returns the configuration of a capture of this kind."""
        task = "statistics" if self.task == "md5" else self.task
        mode = "md5" if self.task == "md5" else "statistics"
        changes: dict = {"task": task, "level": self.level, "summary_mode": mode, "rank": [], "step": []}
        changes["dump_path"] = os.path.join(directory, f"{self.task}_{self.level}")
        changes["async_dump"] = base.async_dump and mode != "md5"
        return dataclasses.replace(base, **changes)


def kinds_of(request: Request, config: Config) -> list:
    """Lists the kinds that the command asks for."""
    own = "md5" if config.task == "statistics" and config.summary_mode == "md5" else config.task
    tasks = _TASKS if request.task == ALL else (own,)
    levels = _LEVELS if request.level == ALL else (config.level,)
    return [Kind(task, level) for task in tasks for level in levels if (task, level) != ("structure", "L1")]


class Prices(Client):
    """Runs bare and captured steps in turn, one kind after another, and reports what each costs."""

    def __init__(self, request: Request, config: Config):
        logger.setLevel(max(logger.level, logging.WARNING))
        self._request = request
        self._config = config
        self._kinds = kinds_of(request, config)
        self._work = os.path.join(os.path.abspath(config.dump_path), f".msprobe_estimate_{os.getpid()}")
        self._shapes = Kind("md5", "mix")
        rounds = request.steps or _DEFAULT_ROUNDS
        # The first bare step and the first of the recorder warm up.
        self._plan: list = [None, self._shapes, *([None, *self._kinds] * rounds)]
        self._at = -1
        self._seconds: dict = {}
        self._memory: dict = {}
        self._kept: list = []  # (directory, bytes)
        self._began = 0.0
        self._debugger: Any = None
        self._extra: list = []
        self._pid = os.getpid()
        self._written = False

    @property
    def _kind(self) -> Optional[Kind]:
        return self._plan[self._at]

    def begin(self, roots: list) -> None:
        if self._at >= 0:
            self._take_figures(time.perf_counter())
        self._at += 1
        if self._at == len(self._plan):
            self.exit()
            raise Finished
        if self._kind is not None:
            self._configure(self._kind, roots)
        _reset_peak()
        self._began = time.perf_counter()
        if self._kind is not None:
            PrecisionDebugger.start(model=roots[0])

    def join(self, root: torch.nn.Module, number: int) -> None:
        if self._kind is not None:
            hooks.add_model(root, number)

    def over(self) -> None:
        if self._at >= 0 and self._kind is not None:
            PrecisionDebugger.stop()

    def close(self) -> None:
        if self._at >= 0 and self._kind is not None:
            PrecisionDebugger.step()

    def wants_roots(self) -> bool:
        return self._at < 2

    def exit(self) -> None:
        if self._written or os.getpid() != self._pid:
            return
        self._written = True
        for kind in self._kinds:
            if kind != self._shapes:
                shutil.rmtree(os.path.join(self._work, f"{kind.task}_{kind.level}"), ignore_errors=True)
        if self._at > 1:
            figures = [
                {"task": k.task, "level": k.level, "seconds": self._seconds.get(k), "memory": self._memory.get(k)}
                for k in self._kinds
            ]
            bare = {"seconds": self._seconds.get(None), "memory": self._memory.get(None)}
            result = {"bare": bare, "kinds": figures, "shapes": self._shapes_directory(), "work": self._work}
            result["complete"] = self._at == len(self._plan)
            # A step is timed when the next one begins.
            result["steps"] = self._at + 1
            result["steps_of_a_round"] = 3 + len(self._kinds) + 1
            result["steps_of_all"] = len(self._plan) + 1
            result["steps_recorded"] = len(self._config.step)
            result["config"] = {"dump_path": self._config.dump_path}
            write_result(self._request.out, f"estimate.{rank_name()}", result)

    # ---- parts

    def _configure(self, kind: Kind, roots: list) -> None:
        config = kind.config(self._config, self._work)
        if self._debugger is None:
            overrides = {**self._request.overrides(), "level": "mix", "task": "statistics", "step": []}
            self._debugger = PrecisionDebugger(self._request.config, **overrides)
        self._debugger._apply(config)
        if kind.level != "L1":
            for number, root in enumerate(roots[1:], 1):
                hooks.add_model(root, number)

    def _take_figures(self, now: float) -> None:
        if self._at > 1:
            self._seconds.setdefault(self._kind, []).append(now - self._began)
            self._memory.setdefault(self._kind, []).append(_peak())
            if self._kind is not None:
                self._keep(self._step_directory(self._kind, self._at))

    def _keep(self, directory: str) -> None:
        """Keeps the latest output on disk, up to a share of the free space."""
        self._kept.append((directory, bytes_in(directory)))
        while sum(size for _, size in self._kept) > _SHARE * shutil.disk_usage(self._work).free:
            shutil.rmtree(self._kept.pop(0)[0], ignore_errors=True)

    def _step_directory(self, kind: Kind, step: int) -> str:
        # PrecisionDebugger counts the steps it was told of; those between were bare.
        told = sum(other is not None for other in self._plan[:step])
        return os.path.join(self._work, f"{kind.task}_{kind.level}", f"step{told}")

    def _shapes_directory(self) -> str:
        return os.path.join(self._step_directory(self._shapes, 1), rank_name())


def _reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:  # the peak is then that of the whole process
        pass


def _peak() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0

"""The budget of a capture: how many bytes it may write, and how much slower a recorded step may be than one that is not.

What is recorded goes down a ladder, never up: tensors of all ops; tensors of modules, statistics of the rest; statistics at
the configured level; statistics of modules; nothing. A rung is left between two steps, when at its price the steps to come do
not fit, or its steps are too slow. The recorder holds the bytes within a step as well: when a step has used its share, it
saves no more tensors, and at the end of the budget nothing is written any more.

Slowdown is the median time of recorded steps over that of steps that are not recorded, from one start() to the next. The steps
outside the step list serve for the latter; without a list, the second and the fourth step are left out for it, and one in
every PROBE_EVERY later on.
"""

import dataclasses
import os
import statistics
import time
from typing import Any, Optional

from .. import _core
from .framework import Framework
from .log import logger

PROBE_EVERY = 50
_FIRST_PROBES = (1, 3)
_ENOUGH = 2  # steps of each sort before a slowdown counts
_KEPT = 5


def ladder(config: Any) -> list:
    """The configuration, and what is left of it rung by rung: (what it records, its configuration)."""
    rungs = [("what is configured", config)]

    def add(name: str, **changes: Any) -> None:
        rungs.append((name, dataclasses.replace(config, warnings=[], **changes)))

    if config.task == "tensor":
        if config.level == "mix":
            add("tensors of modules, statistics of functions", task="statistics", tensor_list=["Module."])
        add("statistics", task="statistics", tensor_list=[])
    elif config.task == "statistics" and config.tensor_list:
        add("statistics", tensor_list=[])
    if config.level == "mix" and config.task in ("tensor", "statistics"):
        add("statistics of modules", task="statistics", level="L0", tensor_list=[])
    rungs.append(("nothing", None))
    return rungs


class Budget:
    """Measures what steps cost, and chooses how much of the configuration the next one can afford."""

    def __init__(self, config: Any, framework: Framework) -> None:
        self._framework = framework
        self._disk: Optional[int] = config.budget.get("disk")
        self._slowdown: Optional[float] = config.budget.get("slowdown")
        self._steps = list(config.step)
        self._ladder = ladder(config)
        self._rung = 0
        self._used = 0
        self._step: Optional[int] = None  # that runs
        self._limited: Optional[int] = None  # the step that has its share
        self._foreseen = False
        self._began = 0.0
        self._recorded = False
        self._seen = 0
        self._bare: list = []
        self._captured: list = []  # at this rung

    @property
    def _config(self) -> Any:
        return self._ladder[self._rung][1]

    @property
    def leaves_out(self) -> str:
        """What is left of the configuration; empty at the top of the ladder."""
        return f"the budget leaves only {self._ladder[self._rung][0]}" if self._rung else ""

    def begin(self, step: int) -> None:
        """At every start(); only the first of a step counts."""
        if step == self._step:
            return
        now = time.perf_counter()
        if self._seen > 1:  # the first step warms up
            times = self._captured if self._recorded else self._bare
            times.append(now - self._began)
            del times[:-_KEPT]
            self._check_time()
        self._step, self._began, self._recorded = step, now, False
        self._seen += 1

    def choose(self, step: int, model: Any) -> Any:
        """The configuration to record this step with; None for not at all."""
        if self._disk is not None and not self._foreseen:
            self._foreseen = True
            self._foresee(list(model) if isinstance(model, (list, tuple)) else [model] if model is not None else [])
        if self._config is not None and self._is_probe():
            logger.info("budget: step %d is not recorded, to measure how long a step takes.", step)
            return None
        self._recorded = self._config is not None
        return self._config

    def limit(self) -> None:
        """What the step that has begun may write."""
        if self._disk is None or self._limited == self._step:
            return
        self._limited = self._step
        share, tensors = self._share()
        _core.limit_writing(tensors, share - tensors, "the budget for the disk is used up")

    def account(self, directory: str) -> None:
        """At the end of a recorded step: whether those to come fit."""
        if self._disk is None or self._config is None:
            return
        written = bytes_in(directory)
        self._used += written
        left = self._disk - self._used
        rest = self._rest()
        if _core.was_limited():
            self._descend("its share was not enough")
        elif left <= 0 or (rest is not None and written * rest > left):
            self._descend(f"{rest or 'more'} steps of {written} bytes do not fit into {max(left, 0)} bytes")

    # ---- parts

    def _foresee(self, models: list) -> None:
        """Before the first recorded step: a rung whose tensors cannot fit is not tried."""
        while self._saves():
            least = _least_tensor_bytes(self._config, models, self._framework)
            if least <= self._share()[1]:
                return
            self._descend(f"the tensors of a step have at least {least} bytes", "from")

    def _share(self) -> tuple:
        """Bytes that the step may write, and how many of them are for tensors."""
        left = max(self._disk - self._used, 0)
        rest = self._rest()
        if rest is not None:
            share = left // (rest + 1)
            tensors = share - share // 10
        else:  # a tenth of the whole is kept for statistics
            share, tensors = left, max(left - self._disk // 10, 0)
        return share, tensors if self._saves() else 0

    def _saves(self) -> bool:
        return self._config is not None and (self._config.task == "tensor" or bool(self._config.tensor_list))

    def _rest(self) -> Optional[int]:
        """How many steps are to be recorded after this one; None when nobody knows."""
        return sum(step > self._step for step in self._steps) if self._steps else None

    def _is_probe(self) -> bool:
        if self._slowdown is None or self._steps:
            return False
        number = self._seen - 1
        return number in _FIRST_PROBES or (number > 0 and number % PROBE_EVERY == 0)

    def _check_time(self) -> None:
        if self._slowdown is None or min(len(self._bare), len(self._captured)) < _ENOUGH or self._config is None:
            return
        slowdown = statistics.median(self._captured) / statistics.median(self._bare)
        if slowdown > self._slowdown:
            self._descend(f"recorded steps take {slowdown:.2f} times as long, allowed are {self._slowdown:g}")

    def _descend(self, why: str, when: str = "after") -> None:
        self._rung += 1
        self._captured = []
        logger.warning("budget: %s step %d only %s: %s.", when, self._step, self._ladder[self._rung][0], why)


def _least_tensor_bytes(config: Any, models: list, framework: Framework) -> int:
    """What the tensors of a step take at least, as far as the configuration and the model tell.

    These are the weights, which functions take as inputs, and their gradients, which are recorded with the modules. 0 where
    a filter decides what is saved.
    """
    whole = config.task == "tensor" and config.data_mode == ["all"]
    if not whole or config.scope or config.list_ or config.tensor_list or config.slice_:
        return 0
    weights, gradients = framework.parameter_bytes(models)
    with_functions, with_modules = config.level in ("L1", "mix"), config.level in ("L0", "mix")
    return weights * with_functions + gradients * with_modules


def bytes_in(directory: str) -> int:
    """Files with several names count once."""
    sizes = {}
    for place, _, names in os.walk(directory):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())

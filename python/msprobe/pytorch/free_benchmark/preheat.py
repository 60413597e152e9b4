"""Thresholds that are found in the first steps: they are lowered until they separate what the CPU confirms from what it does not."""

import math
from collections import defaultdict

import torch

from ..._capture.free_benchmark import Settings
from .ratio import threshold_of

_FIRST = 2.05  # threshold
_FACTOR = 2.0  # by which the part of a threshold above 1 changes


class Preheat:
    """The thresholds of all functions, by dtype."""

    def __init__(self, settings: Settings) -> None:
        """Begins with a threshold that hardly a result exceeds."""
        self._settings = settings
        self._calls: dict = defaultdict(int)  # function -> calls in step 0
        self._called: dict = defaultdict(int)  # in this step
        self._sampled: dict = defaultdict(int)
        self._records: dict = defaultdict(lambda: defaultdict(list))  # function -> dtype -> (ratio, confirmed)
        self._thresholds: dict = {}
        self._settled: set = set()
        self._step = 0

    def threshold(self, function: str, dtype: torch.dtype) -> float:
        """Returns the largest ratio of two results of a function that counts as rounding."""
        return self._thresholds.get((function, dtype), _FIRST)

    def counts(self, function: str, step: int) -> bool:
        """Counts a call of step 0, in which nothing is compared. Returns whether it is one."""
        if step == 0:
            self._calls[function] += 1
        return step == 0

    def wants_sample(self, function: str, step: int) -> bool:
        """Whether this call is compared with the CPU."""
        if step != self._step:
            self._step = step
            for counted in (self._records, self._called, self._sampled):
                counted.clear()
        if step >= self._settings.preheat_step:
            return False
        self._called[function] += 1
        total = self._calls[function]
        if total == 0:
            return False
        chosen = {(self._settings.preheat_step * at + step) % total or total for at in range(self._samples(function))}
        if self._called[function] not in chosen:
            return False
        self._sampled[function] += 1
        return True

    def _samples(self, function: str) -> int:
        return min(math.ceil(self._calls[function] / self._settings.preheat_step), self._settings.max_sample)

    def take(self, function: str, dtype: torch.dtype, ratio: float, confirmed: bool) -> None:
        """Takes a ratio, and whether the CPU confirms the script's result."""
        if (function, dtype) in self._settled:
            return
        self._records[function][dtype].append((ratio, confirmed))
        if self._sampled[function] < self._samples(function):
            return
        for kind, pairs in self._records[function].items():
            adjusted = self._adjusted(function, kind, pairs)
            self._thresholds[function, kind] = max(adjusted, threshold_of(kind))

    def _adjusted(self, function: str, dtype: torch.dtype, pairs: list) -> float:
        right = [ratio for ratio, confirmed in pairs if confirmed]
        wrong = [ratio for ratio, confirmed in pairs if not confirmed]
        before = self.threshold(function, dtype)
        if right and wrong:
            if min(wrong) <= max(right):
                return before
            self._settled.add((function, dtype))
            return min(min(wrong), before)
        if not right:
            self._settled.add((function, dtype))
            return min(min(wrong), before)
        return 1 + (before - 1) * (_FACTOR if max(right) > before else 1 / _FACTOR)

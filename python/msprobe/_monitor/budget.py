"""The budget of a monitor: how many bytes it may write, and how much slower the training may become.

What does not fit is left out step by step and never comes back: first activations and features of modules, then nine of ten
monitored steps, and nine of ten of those, and in the end everything. The training goes on in any case.

Slowdown is the time of the training over that without a monitor: of the fastest of the last monitored steps over the fastest of
the last others, spread over the steps between two that are monitored. Where each step is monitored, a few are left out for that.
"""

import time
from collections import deque
from typing import Optional

from .._capture.log import logger

_PROBES = (1, 3, 5)  # steps that are left out at the beginning where every step is monitored
_PROBE_EVERY = 50
_ENOUGH = 3  # steps of each sort before a slowdown counts
_KEPT = 5
_MOST_THIN = 1000
_SHARES = ((0.5, 10), (0.75, 100))  # from this share of the disk on only one monitored step in so many


class Budget:
    """Measures what steps cost, and says which are monitored and what is left out."""

    def __init__(self, disk: Optional[int], slowdown: Optional[float], interval: int, has_activations: bool) -> None:
        """Has seen no step yet.

        Args:
            disk: Bytes; None: no limit.
            slowdown: Such as 1.02; None: no limit.
            interval: Steps from one that is monitored to the next.
            has_activations: Whether there are activations to leave out.
        """
        self._disk, self._slowdown, self._interval = disk, slowdown, interval
        self._has_activations = has_activations
        self._thin = 1
        self._turns = -1  # steps that the configuration would monitor
        self._steps = 0
        self._used = 0
        self._largest = 0  # bytes of a step
        self._last = 0.0
        self._times: dict = {kind: deque(maxlen=_KEPT) for kind in (True, False)}
        self.over = False  # nothing is monitored any more

    def wants(self) -> bool:
        """Whether the next step, which the configuration would monitor, is."""
        self._turns += 1
        if self.over or self._turns % self._thin:
            return False
        if self._disk is not None and self._used + 2 * self._largest > self._disk:
            self._end("its disk budget of %d bytes is used up", self._disk)
            return False
        alone = self._slowdown is not None and self._interval * self._thin == 1
        return not (alone and (self._turns in _PROBES or self._turns % _PROBE_EVERY == _PROBE_EVERY - 1))

    def ended(self, monitored: bool, written: int) -> bool:
        """A step has ended.

        Args:
            monitored: Whether it was monitored.
            written: Bytes that it wrote.

        Returns:
            Whether activations are to be left out from now on.
        """
        now = time.perf_counter()
        if self._steps > 1:  # the first is unlike the others
            self._times[monitored].append(now - self._last)
        self._last, self._steps = now, self._steps + 1
        self._used += written
        self._largest = max(self._largest, written)
        if not monitored or self.over:
            return False
        for share, thin in _SHARES if self._disk is not None else ():
            if self._used > share * self._disk and self._thin < thin:
                self._thin = thin
                logger.warning(
                    "monitor: %d of %d bytes are written: only one in %d of the monitored steps from now on",
                    self._used,
                    self._disk,
                    thin,
                )
        return self._is_too_slow() and self._step_down()

    def _is_too_slow(self) -> bool:
        if self._slowdown is None or any(len(times) < _ENOUGH for times in self._times.values()):
            return False
        step = min(self._times[True]) / min(self._times[False])
        self._ratio = 1 + max(step - 1, 0) / (self._interval * self._thin)
        return self._ratio > self._slowdown

    def _step_down(self) -> bool:
        self._times[True].clear()
        if self._has_activations:
            self._has_activations = False
            logger.warning(
                "monitor: the training takes %.3f times as long, the budget allows %.3f: modules are left out from now on",
                self._ratio,
                self._slowdown,
            )
            return True
        if self._thin * 10 > _MOST_THIN:
            self._end("the training takes %.3f times as long even so", self._ratio)
            return False
        self._thin *= 10
        logger.warning(
            "monitor: the training takes %.3f times as long, the budget allows %.3f: only one in %d of the monitored steps "
            "from now on",
            self._ratio,
            self._slowdown,
            self._thin,
        )
        return False

    def _end(self, why: str, *values: object) -> None:
        self.over = True
        logger.warning("monitor: " + why + ": nothing more is written", *values)

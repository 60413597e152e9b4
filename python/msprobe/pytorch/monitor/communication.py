"""Communications of torch.distributed: statistics of their tensors before and after, or only where they are called."""

import functools
import re
import traceback
from collections.abc import Callable
from typing import Any

import torch

from ..._compat import distributed_module
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from ..hook_points import HookSet
from .device_rows import FORMULAS, wide_type
from .values import Values

dist = distributed_module()

# Functions of torch.distributed that a training's own code calls with tensors.
CALLS = (
    "send",
    "recv",
    "isend",
    "irecv",
    "batch_isend_irecv",
    "broadcast",
    "all_reduce",
    "reduce",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_tensor",
    "all_gather",
    "gather",
    "_all_gather_base",
    "all_gather_into_tensor",
)
_SUMS = {"norm", "nans"}
_EXTREMES = {"min": min, "max": max}


class CommunicationWatch:
    """Wraps the functions while it is installed. Several calls in a step become one row."""

    def __init__(self, config: MonitorConfig, board: Board, values: Values, guard: Callable) -> None:
        """Knows where values go.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Takes tensors.
            guard: Runs what must not stop the training.
        """
        options = config.cc_distribution
        self._lines = [re.compile(pattern) for pattern in options.get("cc_codeline", [])]
        self._before = options.get("cc_pre_hook", False)
        self._log_only = options.get("cc_log_only", False)
        self._ops = config.ops
        self._eps = config.eps
        self._board, self._values, self._guard = board, values, guard
        self._found: dict = {}  # name of the row -> list of values of each call
        self._stacks: dict = {}
        self._waiting: dict = {}  # id of a Work -> (Work, what is to be done)
        self._hooks = HookSet()
        self.armed = True

    def install(self) -> None:
        """Begins."""
        if not dist.is_available():
            return
        for name in CALLS:
            original = getattr(dist, name, None)
            if original is None:
                continue
            wrapped = self._wrap(name, original)
            for owner in (dist, dist.distributed_c10d):
                if getattr(owner, name, None) is original:
                    self._hooks.instead(owner, name, wrapped)
        wait = dist.Work.wait

        @functools.wraps(wait)
        def waited(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = wait(work, *args, **kwargs)
            _, after = self._waiting.pop(id(work), (None, None))
            if after is not None:
                self._guard(after)
            return result

        self._hooks.instead(dist.Work, "wait", waited)

    def remove(self) -> None:
        """Ends; the functions are those of torch.distributed again."""
        self._hooks.remove()
        self._waiting.clear()
        self._found.clear()

    def stacks(self) -> dict:
        """Function -> the stacks that called it."""
        return {name: [stack.split(";") for stack in sorted(found)] for name, found in self._stacks.items()}

    def finish(self) -> None:
        """One row for each function, side and place of the tensor, of all its calls in the step."""
        found, self._found = self._found, {}
        for name, calls in found.items():
            number = self._board.series("other", name, "cc")
            self._board.put(number, [self._combine(op, [c[i] for c in calls]) for i, op in enumerate(self._ops)])

    def _combine(self, op: str, values: list) -> Any:
        if op in ("shape", "dtype", "id"):
            return values[0] if len(set(map(str, values))) == 1 else None
        values = [v for v in values if v is not None]
        if not values:
            return None
        if op in _EXTREMES:
            return _EXTREMES[op](values)
        return sum(values) if op in _SUMS else sum(values) / len(values)

    def _wrap(self, name: str, original: Callable) -> Callable:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.armed and not self._log_only:
                return original(*args, **kwargs)
            wanted: list = []
            values = (*args, *kwargs.values())
            self._guard(lambda: wanted.append(self._begin(name, values)))
            result = original(*args, **kwargs)
            if wanted and wanted[0]:
                self._end(name, values, result)
            return result

        return call

    def _begin(self, name: str, values: tuple) -> bool:
        if self._log_only or self._lines:
            frames = [f"{f.filename}[{f.lineno}]   {f.name}" for f in reversed(traceback.extract_stack())]
            stack = ";".join(f for f in frames if "/msprobe/" not in f)
            if self._log_only:
                self._stacks.setdefault(name, set()).add(stack)
                return False
            if not any(line.search(stack) for line in self._lines):
                return False
        if self._before:
            self._take(name, "pre", values)
        return True

    def _end(self, name: str, values: tuple, result: Any) -> None:
        works = result if isinstance(result, list) else [result]
        works = [work for work in works if isinstance(work, dist.Work)]
        if works:
            self._waiting[id(works[-1])] = (works[-1], lambda: self._take(name, "post", values))
        else:
            self._guard(lambda: self._take(name, "post", values))

    @torch.no_grad()
    def _take(self, name: str, side: str, values: tuple) -> None:
        place = 0
        for value in values:
            tensors = _tensors(value)
            if not tensors:
                continue
            self._found.setdefault(f"0:{name}.{side}_{place}", []).append(self._statistics(tensors))
            place += 1

    def _statistics(self, tensors: list) -> list:
        """The values of a call; those that a device computes are filled in at the end of the step."""
        one = tensors[0] if len(tensors) == 1 else torch.cat([t.detach().reshape(-1) for t in tensors])
        plain = one.detach()
        shape = list(tensors[0].shape) if len(tensors) == 1 else [len(tensors), *tensors[0].shape]
        known = {"shape": str(shape), "dtype": str(plain.dtype)}
        values = [known.get(op) for op in self._ops]
        places = [place for place, op in enumerate(self._ops) if op in FORMULAS] if plain.numel() else []
        if places:
            wide = wide_type(plain.device.type)
            if not plain.is_floating_point() or plain.element_size() == 1:
                plain = plain.to(wide)
            numbers = torch.stack([FORMULAS[self._ops[i]](plain, wide, self._eps).to(wide) for i in places])

            def fill(found: list) -> None:
                for place, value in zip(places, found):
                    values[place] = int(value) if self._ops[place] == "nans" else value

            if plain.device.type == "cpu":
                fill(numbers.tolist())
            else:
                self._values.rows.add(numbers, fill)
        return values


def _tensors(value: Any) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list) and value:
        if isinstance(value[0], torch.Tensor):
            return value
        if isinstance(value[0], dist.P2POp):
            return [op.tensor for op in value]
    return []

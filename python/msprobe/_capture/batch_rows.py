"""Whose tokens the rows of an engine's batch are: what start() is given, or what the engine's own batch says."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .. import _core
from . import slices
from .config import Config
from .framework import Framework
from .log import logger

_ENGINES = ("vllm", "vllm_ascend")  # packages whose runners keep the batch in `input_batch`
_MOST_FRAMES = 64


@dataclass(frozen=True)
class Row:
    """Tokens of one request that lie behind each other in dimension 0."""

    request: str
    first: Optional[int]  # position of the first one in the request; None: not known
    tokens: int


class BatchRows:
    """The rows of each batch of a step, in their order: recorded with the step, and what `request_id` is cut by.

    A dict of scheduled tokens does not say the order: engines move requests in their batch and schedule in another order. So it
    is taken from `rows`, or from the engine's batch when the model is called, or is not known.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._recorded: list[dict] = []  # of the open step
        self._calls = 0
        self._rows: Optional[list[Row]] = None  # of this start()
        self._scheduled: dict = {}
        self._unhook: Any = None

    def begin_step(self) -> None:
        """Forgets the rows of the step before."""
        self._recorded, self._calls = [], 0

    def choose(self, config: Config, scheduled_tokens: Any, rows: Any) -> bool:
        """Takes what start() is given, and restricts what is recorded to the configured request.

        Args:
            config: `request_id` names the request, if there is one.
            scheduled_tokens: {request id: number of tokens}, in any order.
            rows: See PrecisionDebugger.start().

        Returns:
            False if the request is not scheduled, so that the step must not be recorded.
        """
        self.end()
        slices.set_rules(list(config.slice_))
        problem = slices.problem_of(scheduled_tokens) if scheduled_tokens else ""
        if problem:
            logger.warning("scheduled_tokens %s: request_id has no effect in this step.", problem)
        self._scheduled = dict(scheduled_tokens) if scheduled_tokens and not problem else {}
        self._rows = self._told(rows)
        if config.request_id is None:
            return True
        named = [row.request for row in self._rows] if self._rows is not None else self._scheduled
        if named and config.request_id not in named:
            logger.warning("request %s is not among scheduled_tokens: the step is not recorded.", config.request_id)
            return False
        return True

    def begin(self, config: Config, model: Any) -> None:
        """Called when recording has begun: uses the rows that are known, or waits for the call of the model."""
        self._calls += 1
        if self._rows is None and self._may_be_read():
            root = model[0] if isinstance(model, (list, tuple)) else model
            self._rows = _rows_of_engine(self._scheduled, root)
            if self._rows is None and root is not None:
                self._unhook = self._framework.before_forward(root, lambda: self._at_forward(config))
                if self._unhook is not None:
                    return
        self._use(config)

    def _at_forward(self, config: Config) -> None:
        self.end()
        self._rows = _rows_of_engine(self._scheduled, None)
        self._use(config)

    def end(self) -> None:
        """Waits for no call of the model any more."""
        if self._unhook is not None:
            self._unhook()
        self._unhook = None

    def _may_be_read(self) -> bool:
        return bool(self._scheduled) or any(name in sys.modules for name in _ENGINES)

    def _told(self, rows: Any) -> Optional[list[Row]]:
        if rows is None:
            if len(self._scheduled) == 1:
                [(request, tokens)] = self._scheduled.items()
                return [Row(request, None, tokens)]
            return None
        told, problem = _read_rows(rows, self._scheduled)
        if problem:
            logger.warning("rows %s: they are not used in this step.", problem)
        return told

    def _use(self, config: Config) -> None:
        if self._rows is None:
            if config.request_id is not None and self._scheduled:
                logger.warning(
                    "the order of the rows of this batch is not known, so the rows of request %s are not cut out and the step "
                    "is recorded whole: give start(rows=[...]), the requests in the order of dimension 0.",
                    config.request_id,
                )
            return
        self._recorded += [{**asdict(row), "call": self._calls - 1} for row in self._rows]
        _core.set_schedule(json.dumps(self._recorded))
        if config.request_id is not None:
            slices.choose_rows(config, [(row.request, row.tokens) for row in self._rows])


def _read_rows(rows: Any, scheduled: Mapping[str, int]) -> tuple[Optional[list[Row]], str]:
    if isinstance(rows, (str, Mapping)) or not isinstance(rows, Sequence):
        return None, f"is a {type(rows).__name__}, not a list"
    read: list[Row] = []
    for row in rows:
        if isinstance(row, str):
            if row not in scheduled:
                return None, f"names request {row!r}, which is not among scheduled_tokens"
            read.append(Row(row, None, scheduled[row]))
            continue
        if not isinstance(row, (list, tuple)) or len(row) != 3 or not isinstance(row[0], str):
            return None, f"has {row!r}, which is no request id and no (request id, first position, tokens)"
        request, first, tokens = row
        numbers = (tokens,) if first is None else (first, tokens)
        if any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in numbers) or tokens == 0:
            return None, f"gives request {request!r} {tokens!r} tokens from position {first!r} on"
        read.append(Row(request, first, tokens))
    counted: dict = {}
    for row in read:
        counted[row.request] = counted.get(row.request, 0) + row.tokens
    if scheduled and counted != dict(scheduled):
        return None, "does not have the tokens of scheduled_tokens"
    return read, ""


def _rows_of_engine(scheduled: Mapping[str, int], root: Any) -> Optional[list[Row]]:
    """The rows of the batch that an engine's runner is computing: None where no runner calls us, or its batch is another one.

    Args:
        scheduled: What start() was given; empty: what the runner was given counts.
        root: Has to be running, because before its call the batch may still be that of the last step; None: it is.
    """
    frame = sys._getframe(1)
    running = root is None
    told: Any = dict(scheduled) or None
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        names = frame.f_locals
        owner = names.get("self")
        running = running or (
            owner is root and frame.f_code.co_name in ("__call__", "_call_impl", "_wrapped_call_impl")
        )
        told = told or getattr(names.get("scheduler_output"), "num_scheduled_tokens", None)
        batch = getattr(owner, "input_batch", None) or names.get("input_batch")
        if told and hasattr(batch, "req_ids"):
            return _rows_of_batch(batch, told) if running else None
        frame = frame.f_back
    return None


def _rows_of_batch(batch: Any, told: Mapping[str, int]) -> Optional[list[Row]]:
    requests = [request for request in batch.req_ids if request is not None]
    if len(requests) != len(set(requests)) or set(requests) != set(told):
        return None
    computed = getattr(batch, "num_computed_tokens_cpu", None)
    if computed is None:
        computed = getattr(batch, "num_computed_tokens_np", None)
    firsts = [None] * len(requests) if computed is None else [int(computed[i]) for i in range(len(requests))]
    return [Row(request, first, int(told[request])) for request, first in zip(requests, firsts)]

"""Alarms told to the other ranks through a process group of their own."""

from datetime import timedelta
from typing import Optional

import torch

from ..._compat import distributed_module

dist = distributed_module()


class GroupNews:
    """One number for each rank and exchange, on the processor and beside the training, which waits for none of it.

    An exchange that is not complete is looked at again after the next step: a rank that takes part no more delays the
    news and nothing else.
    """

    def __init__(self) -> None:
        """Makes the group; all ranks do so at the same place."""
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._group = dist.new_group(backend="gloo", timeout=timedelta(days=1))
        self._work: Optional[dist.Work] = None
        self._steps = torch.zeros(0, dtype=torch.int64)
        self._untold = -1  # step of an alarm that no exchange has taken

    def exchange(self, step: int, alarm: bool) -> list:
        """See AlarmNews in _monitor/alarm_news.py."""
        if alarm:
            self._untold = step
        news = []
        if self._work is not None:
            if not self._work.is_completed():
                return []
            self._work.wait()
            told = self._steps.tolist()
            news = [(rank, step) for rank, step in enumerate(told) if step >= 0 and rank != self._rank]
        self._steps = torch.full((self._ranks,), -1, dtype=torch.int64)
        self._steps[self._rank] = self._untold
        self._untold = -1
        self._work = dist.all_reduce(self._steps, op=dist.ReduceOp.MAX, group=self._group, async_op=True)
        return news

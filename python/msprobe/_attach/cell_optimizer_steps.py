"""`msprobe run --save-optimizer` of MindSpore scripts: steps of every optimizer, recorded for `msprobe optimizer_replay`."""

import functools
from typing import Any

from mindspore import nn

from ..mindspore.optimizer_record import OptimizerRecord
from .cell_steps import is_optimizer
from .client import Client
from .exchange import Passing
from .request import Request

FIRST_STEPS = (0, 1, 2)


class CellOptimizerSteps(Passing):
    """Puts a record on each optimizer when it is called first."""

    def __init__(self, request: Request, inner: Client):
        super().__init__(inner)
        scale = request.loss_scale
        self._record = OptimizerRecord(
            request.save_optimizer,
            steps=request.numbers(FIRST_STEPS),
            loss_scale=None if scale == 1.0 else scale,
        )
        original = nn.Cell._self_check

        @functools.wraps(original)
        def check(cell: Any) -> None:
            original(cell)
            if is_optimizer(cell):
                self.guarded(lambda: self._record.watch(cell))

        nn.Cell._self_check = check

"""Inputs and outputs of modules and their gradients. What is done at each call is in src/bindings/monitor/torch."""

import weakref
from collections.abc import Callable

import torch

from ... import _core
from ..._capture.log import logger
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from ..hook_points import HookSet
from .values import Values


class ModuleWatch:
    """The hooks of the modules of one monitor."""

    by_row = False  # rows as TrainerMonitorV2 has them

    def __init__(
        self, config: MonitorConfig, board: Board, values: Values, micro_batches: int, guard: Callable
    ) -> None:
        """Knows where values go; add() hooks a module.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Takes tensors that only Python can read.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
        """
        self._config = config
        self._board = board
        self._values = values
        self._guard = guard
        self._hooks = HookSet()
        self._names: list = []
        self._left_out: set = set()  # rows of outputs that were told
        declare, otherwise = weakref.WeakMethod(self._declare), weakref.WeakMethod(self._otherwise)
        self._taps = _core.ModuleTaps(
            board.journal,
            micro_batches,
            values.threads,
            lambda *a: declare()(*a),
            lambda *a: otherwise()(*a),
            self.by_row,
        )

    @property
    def armed(self) -> bool:
        """Whether the hooks take what they see."""
        return self._taps.armed

    @armed.setter
    def armed(self, armed: bool) -> None:
        self._taps.armed = armed

    def add(self, module: torch.nn.Module, name: str) -> None:
        """Hooks a module whose rows begin with this name."""
        forward = not self._config.backward_only
        backward = not self._config.forward_only and not _has_old_backward_hook(module)
        self._names.append(name)
        before, after = self._taps.add(forward, backward)
        if backward or self.by_row:
            self._hooks.before(module, before, kwargs=True, prepend=True)
        self._hooks.after(module, after, kwargs=True)
        for wanted, table in ((forward, "actv"), (backward, "actv_grad")):
            if wanted:
                self._board.expect(table, name)
        if not self._config.forward_only and not backward:
            self._board.expect("actv_grad", name)
            self._board.why(
                "actv_grad", name, "it has a hook of register_backward_hook(), which PyTorch does not combine"
            )

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()
        self._taps.remove()

    def finish(self) -> None:
        """Takes what is left of gradients of which some never came."""
        self._taps.finish()
        if self._taps.take_surprise():
            logger.warning(
                "monitor: a backward pass began within the forward of a module, as none did before: gradients of modules"
                " that it met first are missing in this step, and only in this one"
            )

        for site, place in self._taps.take_left_out():
            row = f"{self._names[site]}.output_{place}"
            if row not in self._left_out:
                self._left_out.add(row)
                logger.info(
                    "monitor: actv_grad of %s has no values: the module uses this output itself, or gives it twice, and what"
                    " came from outside is not known apart",
                    row,
                )

    def next_step(self) -> None:
        """The optimizer has stepped: calls count from 0 again."""
        self._taps.next_step()

    def _declare(self, site: int, gradient: bool, output: bool, place: int, turn: int, group: int) -> int:
        """The number of a series that has its first value."""
        table = "actv_grad" if gradient else "actv"
        name = self._names[site]
        row = f"{name}.{'output' if output else 'input'}" + (f"_{place}" if place >= 0 else "")
        return self._board.series(table, row, table, turn, 0 if gradient else group, of=name)

    def _otherwise(self, numbers: list, tensors: list) -> None:
        self._guard(lambda: self._values.take(numbers, tensors, often=True))


def _has_old_backward_hook(module: torch.nn.Module) -> bool:
    return bool(module._backward_hooks) and module._is_full_backward_hook is False

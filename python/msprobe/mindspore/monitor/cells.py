"""Inputs and outputs of Cells, and the gradients of their outputs."""

from collections.abc import Callable
from typing import Any

import mindspore

from ..._capture.guard import shielded
from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from .. import cell_hooks


class CellWatch:
    """The hooks of the Cells of one monitor."""

    def __init__(self, config: MonitorConfig, board: Board, micro_batches: int, guard: Callable) -> None:
        """Hooks nothing yet.

        Args:
            config: Of the monitor.
            board: Of its series.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
        """
        self._config, self._board, self._guard = config, board, guard
        self._micro_batches = max(micro_batches, 1)
        self._handles: list = []
        self._calls: dict = {}  # (table, name) -> calls in this step
        self._numbers: dict = {}
        self._groups: dict = {}
        self.armed = True

    def add(self, cell: Any, name: str) -> None:
        """Hooks a Cell whose rows begin with this name."""
        self._handles.append(cell_hooks.after(cell, self._hook(name)))
        if not self._config.backward_only:
            self._board.expect("actv", name)
        if not self._config.forward_only:
            self._board.expect("actv_grad", name)

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.next_step()

    def next_step(self) -> None:
        """The optimizer has stepped: calls count from 0 again."""
        self._calls.clear()

    def _hook(self, name: str) -> Callable:
        def hook(cell: Any, inputs: Any, output: Any) -> None:
            if self.armed:
                self._guard(lambda: self._take(name, inputs, output))

        return hook

    def _take(self, name: str, inputs: Any, output: Any) -> None:
        inputs = _tensors(inputs)
        outputs = _tensors(output)
        if not self._config.backward_only:
            micro = self._next("actv", name)
            self._put("actv", name, "input", micro, inputs)
            self._put("actv", name, "output", micro, outputs)
        if not self._config.forward_only:
            for i, tensor in enumerate(outputs):
                if tensor.dtype in _FLOATING:
                    tensor.register_hook(shielded(self._gradient_hook(name, i if len(outputs) > 1 else -1)))

    def _gradient_hook(self, name: str, place: int) -> Callable:
        def hook(gradient: Any) -> None:
            if self.armed and isinstance(gradient, mindspore.Tensor):
                self._guard(lambda: self._take_gradient(name, place, gradient))

        return hook

    def _take_gradient(self, name: str, place: int, gradient: Any) -> None:
        side = "output" if place < 0 else f"output_{place}"
        self._row("actv_grad", name, side, self._next(f"actv_grad {place}", name), gradient)

    def _next(self, table: str, name: str) -> int:
        seen = self._calls.get((table, name), 0)
        self._calls[table, name] = seen + 1
        return seen % self._micro_batches

    def _put(self, table: str, name: str, side: str, micro: int, tensors: list) -> None:
        for i, tensor in enumerate(tensors):
            self._row(table, name, f"{side}_{i}" if len(tensors) > 1 else side, micro, tensor)

    def _row(self, table: str, name: str, side: str, micro: int, tensor: Any) -> None:
        number = self._numbers.get((table, name, side, micro))
        if number is None:
            group = self._groups.setdefault(name, len(self._groups)) if table == "actv" else 0
            number = self._board.series(table, f"{name}.{side}", table, micro, group, of=name)
            self._numbers[table, name, side, micro] = number
        self._board.take([number], [tensor], 1)


_FLOATING = (mindspore.float16, mindspore.bfloat16, mindspore.float32, mindspore.float64)


def _tensors(value: Any) -> list:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return [item for item in values if isinstance(item, mindspore.Tensor)]

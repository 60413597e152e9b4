"""What the model is given and what it makes of it in one number: statistics of its inputs, and the loss.

A checksum that comes again in another step tells repeated data; a loss that jumps with a checksum never seen before, a bad batch.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import torch

from ..._monitor.board import Board
from ..hook_points import HookSet
from .backward_loss import BackwardLoss
from .values import Values, local_part

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_DEEPEST = 3  # containers within containers that are looked into
_MOST_LOOKED_AT = 512
_PERIOD = 65521  # of the weights of the checksum
_BITS = (1 << 48) - 1  # what a float64 holds exactly


class InputWatch:
    """The hooks of the models of one monitor; of the modules inside nothing is seen."""

    def __init__(self, board: Board, values: Values, micro_batches: int, guard: Callable, inputs: bool) -> None:
        """Hooks nothing yet.

        Args:
            board: Of its series.
            values: Takes tensors.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
            inputs: Not only the loss is taken.
        """
        self._wants_inputs = inputs
        self._board, self._values, self._guard = board, values, guard
        self._micro_batches = max(micro_batches, 1)
        self._hooks = HookSet()
        self._calls: dict = {}  # chunk -> forward passes in this step
        self._losses = self._passes = 0
        self._is_given = False  # the model returns it, or the script gives it
        self._backward = BackwardLoss(self._take_backward, guard)
        self._backward.install()
        self.armed = True

    @property
    def armed(self) -> bool:
        """Whether values are taken."""
        return self._armed

    @armed.setter
    def armed(self, armed: bool) -> None:
        self._armed = armed
        self._backward.armed = armed

    def add(self, model: torch.nn.Module, prefix: str) -> None:
        """Hooks a model."""
        self._hooks.after(model, self._hook(prefix), kwargs=True)
        self._backward.add(model)
        if self._wants_inputs:
            self._board.expect("model_input", prefix)

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()
        self._backward.remove()
        self.next_step()

    def next_step(self) -> None:
        """The optimizer has stepped: passes count from 0 again."""
        self._calls.clear()
        self._losses = self._passes = 0

    def loss(self, value: Any) -> None:
        """Takes the loss of a micro step; what is no tensor or number of one element has no value.

        From now on no loss is taken where backward() is called.
        """
        if not self._is_given:
            self._is_given, self._losses = True, 0
        self._backward.factor.given(value)
        self._put_loss(value)

    def _take_backward(self, value: torch.Tensor, factor: Optional[torch.Tensor]) -> None:
        """A backward pass has reached the models."""
        if not self._is_given:
            self._put_loss(value)
        number = self._board.series("loss_factor", "0:loss", "loss_factor", self._passes % self._micro_batches)
        self._passes += 1
        if factor is not None:
            self._later(number, factor)

    def _put_loss(self, value: Any) -> None:
        number = self._board.series("loss", "0:loss", "loss", self._losses % self._micro_batches)
        self._losses += 1
        if not isinstance(value, torch.Tensor):
            self._board.put(number, [float(value)])
        elif value.numel() == 1:
            self._later(number, value.detach().clone())  # what divides it in place comes later

    def _hook(self, prefix: str) -> Callable:
        def hook(module: torch.nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
            # What wraps a model may stay in evaluation mode behind a validation.
            if self.armed and (module.training or torch.is_grad_enabled()):
                self._guard(lambda: self._take(prefix, args, kwargs, output))

        return hook

    def _take(self, prefix: str, args: tuple, kwargs: dict, output: Any) -> None:
        with torch.no_grad():
            if self._wants_inputs:
                self._take_inputs(prefix, args, kwargs)
            found = loss_of(output)
            if found is not None:
                self.loss(found)

    def _take_inputs(self, prefix: str, args: tuple, kwargs: dict) -> None:
        micro = self._calls.get(prefix, 0)
        self._calls[prefix] = micro + 1
        for name, tensor in tensors_of(args, kwargs):
            row = f"{prefix}{name}"
            number = self._board.series("model_input", row, "model_input", micro % self._micro_batches, of=prefix)
            self._values.take([number], [tensor])
            mark = self._board.series("input_checksum", row, "input_checksum", micro % self._micro_batches, of=prefix)
            self._later(mark, checksum(local_part(tensor)))

    def _later(self, number: int, value: torch.Tensor) -> None:
        """Keeps one number, which may be on a device, until the step is over."""
        self._values.rows.add(value, lambda numbers: self._board.put(number, numbers))


def tensors_of(args: tuple, kwargs: dict) -> Iterator[tuple]:
    """(name, tensor) of the arguments of a model, and of what is in mappings, sequences and objects that hold a batch."""
    given = [(f"args.{i}", value) for i, value in enumerate(args)] + list(kwargs.items())
    waiting = deque((name, value, _DEEPEST) for name, value in given)
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            return
        name, value, deepest = waiting.popleft()
        if isinstance(value, torch.Tensor):
            yield name, value
        elif deepest > 0:
            waiting.extend((f"{name}.{key}", inner, deepest - 1) for key, inner in _members(value))


def _members(value: Any) -> Iterator[tuple]:
    if isinstance(value, (str, bytes, torch.nn.Module)):
        return
    if isinstance(value, Mapping):
        held: Any = value.items()
    elif isinstance(value, (list, tuple)):
        held = enumerate(value)
    else:
        own = getattr(value, "__dict__", None)
        held = list(own.items()) if isinstance(own, dict) else ()
    yield from itertools.islice(held, _MOST_LOOKED_AT)


def loss_of(output: Any) -> Optional[torch.Tensor]:
    """The loss that a model returns: its output where that is one floating number, or the entry `loss` of it."""
    found = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", output)
    if isinstance(found, torch.Tensor) and found.numel() == 1 and found.is_floating_point():
        return found
    return None


def checksum(tensor: torch.Tensor) -> torch.Tensor:
    """A number that another order of the elements, or other elements, change: a sum of bits, each with a weight of its place.

    Computed on the tensor's device, without waiting for it, and exact in float64.
    """
    plain = tensor.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    plain = plain.contiguous().reshape(-1)
    words = plain.view(_WORDS[plain.element_size()]).long()
    weights = torch.arange(words.numel(), device=words.device) % _PERIOD + 1
    return (words * weights).sum() & _BITS

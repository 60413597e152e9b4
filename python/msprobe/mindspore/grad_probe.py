"""Task grad_probe: the gradients that optimizers of MindSpore are called with (PyNative mode)."""

import zlib
from collections.abc import Iterator
from typing import Any, Optional

import mindspore
import numpy as np
from mindspore import nn

from .. import _core
from .._capture.arguments import refuse
from .._capture.config import Config
from .._capture.grad_table import Gradient, GradTable
from .._capture.npy import npy_header
from .._capture.words import say
from . import cell_hooks

_FAULTS = (OSError, RuntimeError, TypeError, ValueError, AttributeError, MemoryError)


def check_optimizer(optimizer: Any) -> None:
    """Raises MsprobeException unless it is a Cell with parameters."""
    if not isinstance(optimizer, nn.Cell) or not hasattr(optimizer, "parameters"):
        text = "the optimizer is a %(kind)s; allowed: one of mindspore.nn or mindspore.mint.optim"
        refuse(say(text, kind=type(optimizer).__name__))


class GradProbe(GradTable):
    """Takes the gradients when an optimizer is called with them."""

    def __init__(self, config: Config, before: Optional["GradProbe"], rank: Any) -> None:
        """Continues the step count of `before`, if there is one. `rank` gives that of the process, or None."""
        super().__init__(config, before)
        self._rank = rank
        self._optimizers: list = []
        self._handles: list = []

    def monitor(self, optimizers: Any) -> None:
        """Adds the parameters of an optimizer, or of several."""
        for optimizer in optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]:
            if not any(known is optimizer for known in self._optimizers):
                self._optimizers.append(optimizer)
                self._handles.append(cell_hooks.before(optimizer, self._before_step))

    def close(self) -> None:
        """Removes the hooks, before another configuration takes over."""
        for handle in self._handles:
            handle.remove()

    def _before_step(self, optimizer: Any, arguments: tuple) -> None:
        if self.ended:
            return
        given = arguments[0] if arguments and isinstance(arguments[0], (list, tuple)) else arguments
        pairs = [(p.name, g) for p, g in zip(optimizer.parameters, given) if self.wants(p.name)]
        if pairs:
            self.take(self._rank() or 0, lambda: self._gradients(pairs), _core.run_unseen, _FAULTS)

    def _gradients(self, pairs: list) -> Iterator["_ArrayGradient"]:
        for name, gradient in pairs:
            if isinstance(gradient, mindspore.Tensor):
                yield _ArrayGradient(name, gradient)


class _ArrayGradient(Gradient):
    def __init__(self, name: str, tensor: Any) -> None:
        wide = tensor if tensor.dtype in (mindspore.float32, mindspore.float64) else tensor.astype(mindspore.float32)
        self.name, self.shape = name, tensor.shape
        self._array = np.ascontiguousarray(wide.asnumpy())

    def summary(self) -> tuple:
        if not self._array.size:
            return 0.0, 0.0, 0.0
        flat = self._array.astype(np.float64).ravel()
        return float(flat.max()), float(flat.min()), float(np.sqrt(np.dot(flat, flat)))

    def checksum(self) -> int:
        return zlib.crc32(self._array.astype(np.float32).tobytes())

    def counts(self, bounds: list) -> list:
        places = np.searchsorted(np.array(bounds, self._array.dtype), self._array.ravel())
        return [*np.bincount(places, minlength=len(bounds) + 1).tolist(), int((self._array == 0).sum())]

    def signs(self) -> list:
        signs = self._array > 0
        return [npy_header(signs.shape, "|b1"), signs.tobytes()]

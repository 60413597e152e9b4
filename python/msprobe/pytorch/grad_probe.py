"""Task grad_probe: the gradients of all parameters of PyTorch at each optimizer step."""

import zlib
from collections.abc import Iterator
from typing import Any, Optional

import torch

from .. import _core
from .._capture.config import Config
from .._capture.grad_table import Gradient, GradTable
from .._capture.npy import npy_header
from .._compat import distributed_module
from .hook_points import HookSet
from .living import held_by
from .npy import bytes_of

_FAULTS = (OSError, RuntimeError, TypeError, MemoryError)


class GradProbe(GradTable):
    """Takes the gradients right before an optimizer uses them."""

    def __init__(self, config: Config, before: Optional["GradProbe"] = None) -> None:
        """Continues the step count of `before`, if there is one."""
        super().__init__(config, before)
        self._names: dict = {}  # id of a parameter -> (name, parameter)
        self._hooks = HookSet()

    def monitor(self, models: Any) -> None:
        """Adds the parameters of these models."""
        several = isinstance(models, (list, tuple))
        for index, model in enumerate(models if several else [models]):
            for name, parameter in model.named_parameters():
                full = f"{index}.{name}" if several else name
                if self.wants(full):
                    self._names[id(parameter)] = (full, parameter)
        if not self._hooks:
            self._hooks.around_step(None, self._before_step, None)

    def close(self) -> None:
        """Removes the hook, before another configuration takes over."""
        self._hooks.remove()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.ended or held_by(optimizer):
            return  # those that it holds step, too
        own = [p for group in optimizer.param_groups for p in group["params"] if id(p) in self._names]
        if own:
            distributed = distributed_module()
            known = distributed.is_available() and distributed.is_initialized()
            rank = distributed.get_rank() if known else 0
            self.take(rank, lambda: self._gradients(own), _core.run_unseen, _FAULTS)

    def _gradients(self, parameters: list) -> Iterator["_TorchGradient"]:
        for parameter in parameters:
            gradient = getattr(parameter, "main_grad", None)
            gradient = parameter.grad if gradient is None else gradient
            if gradient is not None:
                yield _TorchGradient(self._names[id(parameter)][0], _plain(gradient))


class _TorchGradient(Gradient):
    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        self.name, self.shape, self._tensor = name, tensor.shape, tensor

    def summary(self) -> tuple:
        numbers = _core.statistics_of(self._tensor)
        return numbers[0], numbers[1], numbers[3]

    def checksum(self) -> int:
        return zlib.crc32(bytes_of(self._tensor.float()))

    def counts(self, bounds: list) -> list:
        edges = torch.tensor(bounds, dtype=self._tensor.dtype)
        places = torch.bucketize(self._tensor.flatten(), edges)
        return [*torch.bincount(places, minlength=len(bounds) + 1).tolist(), int((self._tensor == 0).sum())]

    def signs(self) -> list:
        signs = self._tensor > 0
        return [npy_header(signs.shape, "|b1"), bytes_of(signs)]


def _plain(gradient: torch.Tensor) -> torch.Tensor:
    gradient = gradient.detach()
    local = getattr(gradient, "to_local", None)  # DTensor: this rank's shard
    gradient = local() if local is not None else gradient
    if gradient.layout is not torch.strided:
        gradient = gradient.to_dense()
    gradient = gradient.cpu().contiguous()
    return gradient if gradient.dtype in (torch.float32, torch.float64) else gradient.float()

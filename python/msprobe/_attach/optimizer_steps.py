"""`msprobe run --save-optimizer`: steps of every optimizer of the script, recorded for `msprobe optimizer_replay`."""

import functools
import importlib
from collections.abc import Callable
from typing import Any, Optional

import torch

from .. import _core
from ..pytorch.hook_points import HookSet
from ..pytorch.optimizer_record import OptimizerRecord
from .client import Client
from .exchange import Passing
from .parameter_names import names_by_id
from .request import Request

FIRST_STEPS = (0, 1, 2)


class OptimizerSteps(Passing):
    """Begins a record at the first step of the training, when its ranks and models are known."""

    def __init__(self, request: Request, inner: Client):
        super().__init__(inner)
        self._request = request
        self._record: Optional[_UnseenRecord] = None
        self._roots: list = []
        self._clip: Optional[float] = None
        self._hooks = HookSet()
        self._watch_clipping()

    def begin(self, roots: list) -> None:
        super().begin(roots)
        self._take(roots)

    def join(self, root: torch.nn.Module, number: int) -> None:
        self._take([*self._roots, root])
        super().join(root, number)

    def _take(self, roots: list) -> None:
        if self._record is None:
            self._record = self.guarded(self._begun)
        if self._record is not None and roots != self._roots:
            self._roots = list(roots)
            self._record.name(self._roots)

    def _begun(self) -> "_UnseenRecord":
        scale = self._request.loss_scale
        record = _UnseenRecord(
            self._request.save_optimizer,
            steps=self._request.numbers(FIRST_STEPS),
            clip_grad=self._clip,
            loss_scale=None if scale == 1.0 else scale,
        )
        return record

    def _watch_clipping(self) -> None:
        """Notes the norm that the script clips to, if it does so by PyTorch's function."""
        module = importlib.import_module("torch.nn.utils.clip_grad")
        original = module.clip_grad_norm_

        @functools.wraps(original)
        def clip(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            self._note_clipping(max_norm)
            return original(parameters, max_norm, *args, **kwargs)

        for place in (torch.nn.utils, module):
            self._hooks.instead(place, "clip_grad_norm_", clip)

    def _note_clipping(self, norm: Any) -> None:
        if isinstance(norm, (int, float)):
            self._clip = float(norm)
            if self._record is not None:
                self._record.clips_to(self._clip)


class _UnseenRecord(OptimizerRecord):
    """A record that a capture does not see."""

    def name(self, roots: list) -> None:
        """Takes the names of the weights from the models."""
        self._names = names_by_id(roots)

    def clips_to(self, norm: float) -> None:
        """Sets the norm to which the next step clips."""
        self._clip_grad = norm

    def safely(self, write: Callable[[], None]) -> None:
        """Calls a function, of which nothing is recorded."""
        _core.run_unseen(functools.partial(super().safely, write))

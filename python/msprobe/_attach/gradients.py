"""`msprobe run --save-grads` and `--replay-grads`: what the optimizer is about to use, its local norms, or saved ones in its place."""

import functools
import importlib
from typing import Any

import torch

from .._capture.log import logger
from ..pytorch.hook_points import HookSet
from ..pytorch.living import held_by
from . import tensor_sets
from .client import Client
from .exchange import Names, Passing, Saved, rank_of_process, refuse_on, saves_or_warns
from .norm_table import NormRow, write_table
from .parameter_names import names_by_id
from .request import Request
from .torch_values import like, local, stored


class Gradients(Passing):
    """Looks at the gradients right before each optimizer steps."""

    def __init__(self, request: Request, inner: Client):
        super().__init__(inner, request.numbers(()))
        self._directory = request.save_grads
        self._replay_from = request.replay_grads
        self._names = Names(request.names)
        self._scale = request.loss_scale
        self._saved: Any = None
        self._parameter_names: dict = {}  # by id
        self._roots: list = []
        self._number = 0  # of the optimizer within the step
        self._unclipped: dict = {}  # norm by id of the parameter
        self._told: set = set()
        if self._replay_from:
            self._saved = Saved(self._replay_from, rank_of_process(), "grads")
        self._hooks = HookSet()
        self._hooks.around_step(None, self._about_to_step, None)
        if self._directory:
            self._watch_clipping()

    def begin(self, roots: list) -> None:
        self._number = 0
        self._unclipped.clear()
        self._roots = list(roots)
        super().begin(roots)

    def join(self, root: torch.nn.Module, number: int) -> None:
        self._roots.append(root)
        super().join(root, number)

    def _about_to_step(self, optimizer: Any, args: tuple, kwargs: dict) -> None:
        if self.step < 0 or held_by(optimizer):
            return  # before the first forward, or those that it holds step next
        self.guarded(lambda: self._look_at(optimizer))

    def _look_at(self, optimizer: Any) -> None:
        parameters = self._gradients_of(optimizer)
        if not parameters:
            return
        scale = self._scale * _scale_of(optimizer)
        if self._directory and self.saves_now():
            self._save(parameters, scale)
        if self._replay_from:
            self._replay(parameters, scale)
        self._number += 1

    def _gradients_of(self, optimizer: Any) -> dict:
        """Maps names to parameters that have a gradient."""
        self._parameter_names = names_by_id(self._roots)
        found: dict = {}
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                if parameter.grad is not None:
                    name = self._parameter_names.get(id(parameter), f"group{number}.{place}")
                    found[name] = parameter
        return found

    # ---- out

    def _save(self, parameters: dict, scale: float) -> None:
        tensors, keep, rows = {}, [], []
        for name, parameter in parameters.items():
            gradient = local(parameter.grad)
            found = stored(gradient)
            if found is None:
                if name not in self._told:
                    self._told.add(name)
                    logger.warning("gradients: %s has a type that files do not have: it is left out.", name)
                continue
            tensors[name] = found[0]
            keep.append(found[1])
            before = self._unclipped.get(id(parameter))
            rows.append(NormRow(name, gradient, _norm(gradient) / scale, None if before is None else before / scale))
        rank = rank_of_process()
        path = tensor_sets.file_of(self._directory, self.step, rank, "grads", self._number)
        metadata = {"kind": "grads", "step": self.step, "rank": rank, "number": self._number, "loss_scale": scale}
        written = saves_or_warns(path, tensors, metadata)
        if not written or not write_table(path, rows, scale):
            self._directory = ""

    def _watch_clipping(self) -> None:
        """Takes the norms before PyTorch's functions clip."""
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            original = getattr(torch.nn.utils, name)

            def clip(parameters: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
                if not isinstance(parameters, torch.Tensor):
                    parameters = list(parameters)
                listed = [parameters] if isinstance(parameters, torch.Tensor) else parameters
                self.guarded(lambda: self._note_unclipped(listed))
                return _original(parameters, *args, **kwargs)

            clip = functools.wraps(original)(clip)
            for place in (torch.nn.utils, importlib.import_module("torch.nn.utils.clip_grad")):
                self._hooks.instead(place, name, clip)

    def _note_unclipped(self, parameters: list) -> None:
        for parameter in parameters:
            if getattr(parameter, "grad", None) is not None:
                self._unclipped.setdefault(id(parameter), _norm(local(parameter.grad)))

    # ---- in

    def _replay(self, parameters: dict, scale: float) -> None:
        place = refuse_on(self._saved.of_step, self.step, self._number)
        if place is None:
            if "end" not in self._told:
                self._told.add("end")
                logger.warning("no gradients were saved of step %d: the run goes on with its own.", self.step)
            return
        where, tensors, metadata = place
        pairs = self._names.pair(list(parameters), tensors, where)
        factor = scale / float(metadata.get("loss_scale", 1.0))
        with torch.no_grad():
            for name, wanted in pairs.items():
                own = local(parameters[name].grad)
                new = like(tensors[wanted], own, name, where)
                own.copy_(new if factor == 1.0 else new * factor)
        left = sorted(set(parameters) - set(pairs) - self._told)
        if left:
            self._told.update(left)
            logger.warning("replay of gradients: %d keep their own, such as %s.", len(left), left[0])
        unused = sorted(set(tensors) - set(pairs.values()) - self._told)
        if unused:
            self._told.update(unused)
            logger.warning("replay of gradients: %d saved ones are not used, such as %s.", len(unused), unused[0])


def _norm(gradient: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(gradient, dtype=torch.float64)) if gradient.numel() else 0.0


def _scale_of(optimizer: Any) -> float:
    """Returns the loss scale that is still in the gradients: of optimizers that take it out themselves."""
    scale = getattr(optimizer, "grad_scale", None)
    return float(scale) if isinstance(scale, torch.Tensor) and scale.numel() == 1 else 1.0

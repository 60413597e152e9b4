"""Records what an optimizer of MindSpore is given and what it makes of it, for `msprobe optimizer_replay` (PyNative mode)."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Optional, Union

import mindspore
import numpy as np
from mindspore import nn

from .._attach import tensor_sets
from .._attach.exchange import rank_of_process
from .._attach.tensor_sets import Stored
from .._optimizer_record import StepRecord, plain, write_description
from . import cell_hooks

# Attributes that hold a state of each weight, by the names that the replay knows.
_STATES = {"moments1": "moment1", "moments2": "moment2", "moments": "momentum_buffer", "accum": "momentum_buffer"}


class OptimizerRecord(StepRecord):
    """Hooks on an optimizer that write each step below a directory; remove() takes them off.

    Nothing of the training changes: the hooks read, before and after the optimizer runs. A step that cannot be written
    (the disk is full) ends the record with a warning, not the training.

    Attributes:
        path: The directory.
        rank: Rank of this process.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        optimizer: Optional[nn.Cell] = None,
        steps: Iterable[int] = (0, 1, 2),
        clip_grad: Optional[float] = None,
        loss_scale: Optional[float] = None,
    ) -> None:
        """Begins with the next step.

        Args:
            path: Directory of the record, `rank0/optimizer0/step0` and so on below it; created if missing.
            optimizer: The optimizer; None to name one later with watch().
            steps: Which steps are written, counted from 0. Two or more in a row show what one does not.
            clip_grad: The norm to which the training clips gradients, if it does.
            loss_scale: What the loss is multiplied by, if gradients are not divided by it before the optimizer runs.

        Raises:
            OSError: The directory cannot be created.
        """
        super().__init__(path, rank_of_process(), steps, clip_grad, loss_scale)
        self._watched: list = []
        if optimizer is not None:
            self.watch(optimizer)

    def watch(self, optimizer: nn.Cell) -> None:
        """Records this optimizer, too.

        Args:
            optimizer: One of `mindspore.nn`, `mindspore.mint.optim` or of the user, derived from either.
        """
        if any(known is optimizer for known in self._watched):
            return
        self._watched.append(optimizer)
        steps = _Steps(self, optimizer, len(self._watched) - 1)
        self._handles.append(cell_hooks.before(optimizer, steps.before))
        self._handles.append(cell_hooks.after(optimizer, steps.after))

    def describe(self, optimizer: nn.Cell, step: int) -> dict:
        """Returns the hyperparameters and counts of a step.

        Args:
            optimizer: An optimizer of MindSpore.
            step: The number of steps before it.

        Returns:
            What optimizer.json holds.
        """
        groups = _groups_of(optimizer)
        states = {name: {"step": step} for group in groups for name in group["weights"]}
        loss_scale = self._loss_scale or _plain(getattr(optimizer, "loss_scale", None))
        described = self._describe(_kind_of(optimizer), step, loss_scale, None, groups, states)
        return {**described, "module": type(optimizer).__module__}


class _Steps:
    """The hooks of one optimizer."""

    def __init__(self, record: OptimizerRecord, optimizer: nn.Cell, number: int) -> None:
        self._record, self._number = record, number
        self._count = 0
        self._begun = _steps_done(optimizer)

    def before(self, optimizer: nn.Cell, inputs: tuple) -> None:
        """Writes what the optimizer is given."""
        if self._record.wants(self._count):
            self._record.safely(lambda: self._write_before(optimizer, inputs))

    def after(self, optimizer: nn.Cell, _inputs: tuple, _output: Any) -> None:
        """Writes what it made of it."""
        if self._record.wants(self._count):
            self._record.safely(lambda: self._write("after.safetensors", _weights_of(optimizer)))
        self._count += 1

    def _write_before(self, optimizer: nn.Cell, inputs: tuple) -> None:
        tensors = _weights_of(optimizer)
        gradients = inputs[0] if inputs and isinstance(inputs[0], (tuple, list)) else inputs
        for parameter, gradient in zip(optimizer.parameters, gradients):
            tensors[f"grad/{parameter.name}"] = _stored(gradient)
        self._write("before.safetensors", tensors)
        directory = self._record.directory(self._number, self._count)
        write_description(directory, self._record.describe(optimizer, self._begun + self._count))

    def _write(self, name: str, tensors: dict) -> None:
        path = os.path.join(self._record.directory(self._number, self._count), name)
        tensor_sets.write(path, {key: tensor for key, tensor in tensors.items() if tensor is not None}, {})


def _weights_of(optimizer: nn.Cell) -> dict:
    tensors = {f"weight/{p.name}": _stored(p) for p in optimizer.parameters}
    for key, values in _states_of(optimizer):
        for parameter, value in zip(optimizer.parameters, values):
            tensors[f"state/{parameter.name}/{key}"] = _stored(value)
    return tensors


def _states_of(optimizer: nn.Cell) -> Iterator[tuple]:
    """The attributes that hold a tensor of the same shape for each weight."""
    shapes = [tuple(p.shape) for p in optimizer.parameters]
    own = {"parameters", "_parameters", "params", "_original_params"}
    for key in dir(optimizer):
        if key in own or key.startswith("_"):
            continue
        values = getattr(optimizer, key, None)
        if not isinstance(values, (tuple, list)) or len(values) != len(shapes):
            continue
        if all(isinstance(v, mindspore.Tensor) and tuple(v.shape) == s for v, s in zip(values, shapes)):
            yield _STATES.get(key, key), values


def _groups_of(optimizer: nn.Cell) -> list:
    """One group for each pair of learning rate and weight decay."""
    if hasattr(optimizer, "param_groups"):  # as those of PyTorch
        groups = []
        for group in optimizer.param_groups:
            groups.append({key: _plain(value) for key, value in group.items() if key != "params"})
            groups[-1]["weights"] = [p.name for p in group["params"]]
        return groups
    shared = _shared_of(optimizer)
    rates = _of_each(optimizer.get_lr(), optimizer)
    decays = _of_each(optimizer.get_weight_decay(), optimizer)
    flags = getattr(optimizer, "decay_flags", None) or [True] * len(optimizer.parameters)
    found: dict = {}
    for parameter, rate, decay, flag in zip(optimizer.parameters, rates, decays, flags):
        key = (rate, decay if flag else 0.0)
        found.setdefault(key, {"lr": key[0], "weight_decay": key[1], **shared, "weights": []})
        found[key]["weights"].append(parameter.name)
    return list(found.values())


def _shared_of(optimizer: nn.Cell) -> dict:
    """Hyperparameters of all weights, under the names that PyTorch has for them."""
    out: dict = {}
    betas = _plain(getattr(optimizer, "betas", None)) or [_plain(getattr(optimizer, f"beta{i}", None)) for i in (1, 2)]
    if None not in betas:
        out["betas"] = betas
    names = {"eps": "eps", "momentum": "momentum", "dampening": "dampening", "amsgrad": "use_amsgrad"}
    names |= {"nesterov": "use_nesterov" if hasattr(optimizer, "use_nesterov") else "nesterov"}
    for name, attribute in names.items():
        value = _plain(getattr(optimizer, attribute, None))
        if value is not None:
            out[name] = value
    if isinstance(optimizer, nn.Adam):  # eps stands beside the root of the moment before it is corrected
        out |= {"eps_place": "before_correction", "capturable": True}  # and the correction is in float32
    if isinstance(optimizer, nn.AdamWeightDecay):
        out |= {"bias_correction": False, "decoupled_weight_decay": True}
    return out


def _kind_of(optimizer: nn.Cell) -> str:
    name = type(optimizer).__name__
    if isinstance(optimizer, nn.Adam) and getattr(optimizer, "use_nesterov", False):
        return "NAdam"  # which the replay does not know
    return name


def _of_each(value: Any, optimizer: nn.Cell) -> list:
    """A hyperparameter of each weight, where all share one, too."""
    if isinstance(value, (tuple, list)) and len(value) == len(optimizer.parameters):
        return [_plain(v) for v in value]
    return [_plain(value)] * len(optimizer.parameters)


def _steps_done(optimizer: nn.Cell) -> int:
    done = _plain(getattr(optimizer, "global_step", None))
    return int(done) if isinstance(done, (int, float)) else 0


def _plain(value: Any) -> Any:
    """A hyperparameter as JSON has it; None for what is none."""
    return plain(value, mindspore.Tensor, lambda t: t.asnumpy().reshape(-1)[0].item() if t.size == 1 else None)


def _stored(value: Any) -> Optional[Stored]:
    if not isinstance(value, mindspore.Tensor):
        return None
    if value.dtype == mindspore.bfloat16:  # numpy has no such type: its bits are the upper half of a float32
        wide = value.astype(mindspore.float32).asnumpy()
        return Stored("BF16", wide.shape, (wide.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    return tensor_sets.of_array(value.asnumpy())

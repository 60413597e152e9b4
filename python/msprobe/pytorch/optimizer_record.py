"""Records what an optimizer is given and what it makes of it: weights, gradients and states before and after each step.

`msprobe optimizer_replay DIRECTORY` computes the same steps again in float64 and says which term of the update is not as its
hyperparameters say.
"""

import json
import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Optional, Union
from weakref import WeakKeyDictionary

import torch

from .._compat import distributed_module
from .._optimizer_record import StepRecord, plain, write_description
from .hook_points import HookSet
from .living import held_by
from .npy import bytes_of

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def _rank() -> int:
    distributed = distributed_module()
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The values of this rank, in memory of their own that NumPy can see."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local.detach().to("cpu").contiguous()


def _write_tensors(path: str, tensors: "Iterable[tuple[str, torch.Tensor]]") -> None:
    """A safetensors file, which appears whole or not at all."""
    listed = [(name, t) for name, t in tensors if t.dtype in DTYPES and t.layout == torch.strided]
    header: dict[str, Any] = {}
    at = 0
    for name, tensor in listed:
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in listed:
            host = _on_host(tensor)
            file.write(bytes_of(host))
    os.replace(path + ".part", path)


def _plain(value: Any) -> Any:
    """A hyperparameter as JSON has it."""
    return plain(value, torch.Tensor, lambda tensor: tensor.item() if tensor.numel() == 1 else None)


class OptimizerRecord(StepRecord):
    """Hooks on one optimizer, or on all of the process, that write each step below a directory; remove() takes them off.

    Nothing of the training changes: the hooks read, before and after step(). A step that cannot be written (the disk is
    full) ends the record with a warning, not the training.

    Attributes:
        path: The directory.
        rank: Rank in torch.distributed when constructed; 0 without it.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        optimizer: Optional[torch.optim.Optimizer] = None,
        model: Optional[torch.nn.Module] = None,
        steps: Iterable[int] = (0, 1, 2),
        clip_grad: Optional[float] = None,
        loss_scale: Optional[float] = None,
    ) -> None:
        """Begins with the next step.

        Args:
            path: Directory of the record, `rank0/optimizer0/step0` and so on below it; created if missing.
            optimizer: The optimizer; every one of the process without it.
            model: Its parameters give the weights their names; without it they are numbered.
            steps: Which calls of step() are written, counted from 0. Two or more in a row show what one does not: the
                momentum's dampening, amsgrad, the order of the betas.
            clip_grad: The norm to which the training clips gradients, if it does: the record says so, and the replay
                holds the gradients to it.
            loss_scale: What the loss is multiplied by, if the training does not divide gradients by it before step().

        Raises:
            OSError: The directory cannot be created.
        """
        super().__init__(path, _rank(), steps, clip_grad, loss_scale)
        self._names = {} if model is None else {id(p): name for name, p in model.named_parameters()}
        # By the object, not its id: that of an optimizer which is gone is given to the next one.
        self._counts: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._next_number = 0
        # A subclass may call the step() of its base: that is no step of its own.
        self._depths: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._hooks = HookSet()
        for stepped in held_by(optimizer) or [optimizer]:
            self._hooks.around_step(stepped, self._before, self._after)

    def _directory(self, optimizer: torch.optim.Optimizer) -> str:
        if optimizer not in self._numbers:
            self._numbers[optimizer] = self._next_number
            self._next_number += 1
        return self.directory(self._numbers[optimizer], self._counts.get(optimizer, 0))

    def _named(self, optimizer: torch.optim.Optimizer) -> "Iterator[tuple[int, str, torch.nn.Parameter]]":
        for g, group in enumerate(optimizer.param_groups):
            for k, parameter in enumerate(group["params"]):
                given = group.get("param_names")
                name = self._names.get(id(parameter)) or (given[k] if given else f"group{g}.weight{k}")
                yield g, name, parameter

    def _weights(self, optimizer: torch.optim.Optimizer, gradients: bool) -> "Iterator[tuple[str, torch.Tensor]]":
        for _, name, parameter in self._named(optimizer):
            yield f"weight/{name}", parameter
            if gradients and parameter.grad is not None:
                yield f"grad/{name}", parameter.grad
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield f"state/{name}/{key}", value

    def _description(self, optimizer: torch.optim.Optimizer) -> "dict[str, Any]":
        groups: list[dict[str, Any]] = []
        for group in optimizer.param_groups:
            groups.append({k: _plain(v) for k, v in group.items() if k not in ("params", "param_names")})
            groups[-1]["weights"] = []
        states: dict[str, dict[str, Any]] = {}
        for g, name, parameter in self._named(optimizer):
            groups[g]["weights"].append(name)
            numbers = {k: v for k, v in optimizer.state.get(parameter, {}).items() if isinstance(v, (int, float))}
            if numbers:
                states[name] = numbers
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer divides by it itself
        loss_scale = self._loss_scale if scale is None else _plain(scale)
        found_inf = _plain(getattr(optimizer, "found_inf", None))
        step = self._counts.get(optimizer, 0)
        described = self._describe(type(optimizer).__name__, step, loss_scale, found_inf, groups, states)
        return {**described, "module": type(optimizer).__module__}

    def _before(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._depths[optimizer] = self._depths.get(optimizer, 0) + 1
        if self._depths[optimizer] > 1:
            return
        if not held_by(optimizer) and self.wants(self._counts.get(optimizer, 0)):
            self.safely(lambda: self._write_before(optimizer))

    def _write_before(self, optimizer: torch.optim.Optimizer) -> None:
        directory = self._directory(optimizer)
        os.makedirs(directory, exist_ok=True)
        _write_tensors(os.path.join(directory, "before.safetensors"), self._weights(optimizer, True))
        write_description(directory, self._description(optimizer))

    def _after(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._depths[optimizer] = max(self._depths.get(optimizer, 0) - 1, 0)
        if self._depths[optimizer] > 0 or held_by(optimizer):
            return  # each of these is recorded
        count = self._counts.get(optimizer, 0)
        if self.wants(count):
            path = os.path.join(self._directory(optimizer), "after.safetensors")
            self.safely(lambda: _write_tensors(path, self._weights(optimizer, False)))
        self._counts[optimizer] = count + 1

"""Records what an optimizer is given and what it makes of it: weights, gradients and states before and after each step.

`msprobe optimizer_replay DIRECTORY` computes the same steps again in float64 and says which term of the update is not as its
hyperparameters say.
"""

import json
import os
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, Union
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .npy import bytes_of

FORMAT = 1
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
    distributed = torch.distributed
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
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else None
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


class OptimizerRecord:
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
        self.path = os.fspath(path)
        self.rank = _rank()
        self._names = {} if model is None else {id(p): name for name, p in model.named_parameters()}
        self._steps = frozenset(steps)
        self._clip_grad, self._loss_scale = clip_grad, loss_scale
        # By the object, not its id: that of an optimizer which is gone is given to the next one.
        self._counts: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._next_number = 0
        os.makedirs(self.path, exist_ok=True)
        if optimizer is not None:
            pre, post = optimizer.register_step_pre_hook, optimizer.register_step_post_hook
        else:
            pre, post = register_optimizer_step_pre_hook, register_optimizer_step_post_hook
        self._handles = [pre(self._before), post(self._after)]

    def remove(self) -> None:
        """Takes the hooks off; what is written stays."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> "OptimizerRecord":
        """Returns itself: `with OptimizerRecord("record", optimizer):`."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Takes the hooks off."""
        self.remove()

    def _directory(self, optimizer: torch.optim.Optimizer) -> str:
        if optimizer not in self._numbers:
            self._numbers[optimizer] = self._next_number
            self._next_number += 1
        number, step = self._numbers[optimizer], self._counts.get(optimizer, 0)
        return os.path.join(self.path, f"rank{self.rank}", f"optimizer{number}", f"step{step}")

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
        return {
            "format": FORMAT,
            "optimizer": type(optimizer).__name__,
            "module": type(optimizer).__module__,
            "step": self._counts.get(optimizer, 0),
            "clip_grad": self._clip_grad,
            "loss_scale": self._loss_scale if scale is None else _plain(scale),
            "found_inf": _plain(getattr(optimizer, "found_inf", None)),
            "groups": groups,
            "states": states,
        }

    def _before(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._counts.get(optimizer, 0) not in self._steps:
            return

        def write(directory: str) -> None:
            os.makedirs(directory, exist_ok=True)
            _write_tensors(os.path.join(directory, "before.safetensors"), self._weights(optimizer, True))
            with open(os.path.join(directory, "optimizer.json"), "w", encoding="utf-8") as file:
                json.dump(self._description(optimizer), file)

        self._safely(write, optimizer)

    def _after(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        count = self._counts.get(optimizer, 0)
        if count in self._steps:
            self._safely(
                lambda directory: _write_tensors(
                    os.path.join(directory, "after.safetensors"), self._weights(optimizer, False)
                ),
                optimizer,
            )
        self._counts[optimizer] = count + 1

    def _safely(self, write: Callable[[str], None], optimizer: torch.optim.Optimizer) -> None:
        """No failure of ours ends a training."""
        try:
            write(self._directory(optimizer))
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            self.remove()
            warnings.warn(f"[msprobe] the record of the optimizer ends: {error}", RuntimeWarning, stacklevel=2)

"""`msprobe certify`: checksums of everything a training computes, taken at the end of each step, with or without capture."""

import os
import platform
import random
import resource
import sys
from typing import Any, Optional

import torch

from .. import _core
from .client import Client
from .ending import Finished, rank_name, write_result
from .request import Request
from .tensor_checksum import checksum


class Digests(Client):
    """Takes the checksums, and passes every moment on to the client it wraps (one that does nothing, in a bare run)."""

    def __init__(self, request: Request, inner: Client, dump_path: str):
        self._request = request
        self._dump_path = os.path.abspath(dump_path)
        self._inner = inner
        self._roots: list = []
        self._steps: list = []
        self._losses: list = []
        self._due = False  # the step that is open has not been looked at
        self._written = False
        self._pid = os.getpid()
        # A generator that nobody seeds begins anywhere; what counts is whether somebody has drawn from it.
        self._first_states = _random_states()
        _watch_backward(self._losses)

    def begin(self, roots: list) -> None:
        if 0 < self._request.steps <= len(self._steps):
            self.exit()
            raise Finished
        self._roots = list(roots)
        self._due = True
        self._losses.clear()
        self._inner.begin(roots)

    def join(self, root: torch.nn.Module, number: int) -> None:
        self._roots.append(root)
        self._inner.join(root, number)

    def over(self) -> None:
        self._inner.over()
        self._look()

    def close(self) -> None:
        self._inner.close()

    def wants_roots(self) -> bool:
        return len(self._steps) < 1

    def exit(self) -> None:
        if self._written or os.getpid() != self._pid:
            return
        self._written = True
        self._look()  # the last step of an inference
        if self._steps:
            write_result(self._request.out, f"{self._request.role}.{rank_name()}", self._result())

    def _result(self) -> dict:
        return {
            "steps": self._steps,
            "peak": _peak_memory(),
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
            "dump_path": self._dump_path,
            "devices": sorted({str(p.device) for root in self._roots for p in root.parameters()}),
        }

    def _look(self) -> None:
        if not self._due:
            return
        self._due = False
        parameters, gradients, buffers = {}, {}, {}
        for number, root in enumerate(self._roots):
            prefix = f"{number}." if number else ""
            for name, parameter in root.named_parameters():
                parameters[prefix + name] = checksum(parameter)
                if parameter.grad is not None:
                    gradients[prefix + name] = checksum(parameter.grad)
            for name, buffer in root.named_buffers():
                buffers[prefix + name] = checksum(buffer)
        self._steps.append(
            {
                "losses": list(self._losses),
                "parameters": parameters,
                "gradients": gradients,
                "buffers": buffers,
                "random": self._changed_states(),
            }
        )
        self._losses.clear()

    def _changed_states(self) -> dict:
        first = self._first_states
        return {name: "untouched" if first.get(name) == now else now for name, now in _random_states().items()}


def _value(tensor: Any) -> Optional[str]:
    return float(tensor.detach()).hex() if tensor.numel() == 1 and not tensor.is_complex() else None


def _watch_backward(losses: list) -> None:
    """Notes the loss: the tensor backward() is called on, unless activation checkpointing calls it inside a backward pass."""
    original = torch.autograd.backward
    running = False

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal running
        if running:
            return original(tensors, *args, **kwargs)
        running = True
        try:
            tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
            losses.extend({"checksum": checksum(tensor), "value": _value(tensor)} for tensor in tensors)
            return original(tensors, *args, **kwargs)
        finally:
            running = False

    torch.autograd.backward = backward


def _random_states() -> dict:
    states = {"python": _core.crc32_of(repr(random.getstate()).encode()), "torch": checksum(torch.get_rng_state())}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state = [part.tolist() if hasattr(part, "tolist") else part for part in numpy.random.get_state()]
        states["numpy"] = _core.crc32_of(repr(state).encode())
    for device in ("cuda", "npu"):
        backend = getattr(torch, device, None)
        if backend is not None and backend.is_available() and backend.is_initialized():
            states[device] = " ".join(map(checksum, backend.get_rng_state_all()))
    return {name: state if isinstance(state, str) else f"{state:08x}" for name, state in states.items()}


def _peak_memory() -> dict:
    peak = {"host": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    for device in ("cuda", "npu"):
        backend = getattr(torch, device, None)
        if backend is not None and backend.is_available() and backend.is_initialized():
            peak[device] = backend.max_memory_allocated()
    return peak

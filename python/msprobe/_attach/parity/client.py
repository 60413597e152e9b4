"""Looks at a step of a training: modules forward and backward, gradients, their norm, and what the optimizer makes of them."""

import functools
import os
import platform
import sys
from typing import Any, Optional

import torch

from ... import _core
from ..._capture import guard
from ..client import Client
from ..ending import Finished, rank_name
from ..request import Request
from ..torch_values import leaves_of, local, rebuilt
from . import engines
from .dropout import Dropouts, in_backward
from .places import Names, axes_of, innermost, is_fsdp, parameter_place, place_of, promised_replicas
from .record import Record
from .rounding import Rounding
from .weights import give_weights

_MOST_PARAMETER_STATES = ("exp_avg", "exp_avg_sq", "momentum_buffer")
_LOST = object()


class Parity(Client):
    """Records steps of one rank. In the role `reference` it takes the weights of the ranks first; `rounded` is one that rounds once more."""

    def __init__(self, request: Request):
        self._request = request
        self._step = -1
        self._roots: list = []
        self._record: Optional[Record] = None
        self._names: Optional[Names] = None
        self._calls: dict = {}
        self._local: dict = {}  # name of a parameter -> the sum of its gradients before any reduction
        self._hooked: set = set()
        self._engine: Any = None  # that is within its own step
        self._gradients_seen = False
        self._due = False
        self._pid = os.getpid()
        self._lost: set = set()  # of our functions that have failed
        self._dropouts = Dropouts(self)
        self._rounding = Rounding() if request.role == "rounded" else None
        self._watch()

    # ---- the guard

    def shielded(self, function: Any) -> Any:
        """Wraps what looks at the training: where it fails the training goes on, and the record says what is lost."""
        call = guard.shielded(function, otherwise=_LOST)

        def look(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if result is not _LOST:
                return result
            inner = getattr(function, "func", function)
            self._lost.add(getattr(inner, "__name__", type(inner).__name__).strip("_<>"))
            return None

        return look

    def unseen(self, function: Any) -> None:
        """Looks at the training without being seen, and without a fault of ours in it."""
        _core.run_unseen(self.shielded(function))

    # ---- moments of the step detector

    def begin(self, roots: list) -> None:
        self.unseen(self._finish_step)
        if 0 < self._request.steps <= self._step + 1:
            self.exit()
            raise Finished
        self._step += 1
        self._roots = list(roots)
        self.unseen(self._begun)

    def join(self, root: torch.nn.Module, number: int) -> None:
        self._roots.append(root)
        self.unseen(self._joined)

    def over(self) -> None:
        self._due = True
        if self._engine is None:
            self._ended()

    def _ended(self) -> None:
        """Ends the script behind the last step: other stages of a pipeline would wait for the next one's first forward."""
        self.unseen(self._finish_step)
        if not 0 < self._request.steps <= self._step + 1:
            return
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.barrier()  # what others still receive is on its way
        self.exit()
        raise Finished

    def wants_roots(self) -> bool:
        return self._step < 1

    def exit(self) -> None:
        if self._record is None or os.getpid() != self._pid:
            return
        self.unseen(self._finish_step)
        record, self._record = self._record, None
        self.shielded(lambda: record.write(self._head()))()

    # ---- a step

    def _begun(self) -> None:
        first = self._record is None
        if first:
            self._record = Record(os.path.join(self._request.out, self._request.role, rank_name()))
        self._calls.clear()
        self._dropouts.begin()
        self._local.clear()
        self._gradients_seen = False
        self._names = Names(self._roots)
        if first and self._request.role != "ranks" and self._request.weights_from:
            give_weights(self._request.weights_from, self._roots, self._names, self._record)
        self._look_at_parameters("parameter")
        self._hook_modules()

    def _joined(self) -> None:
        self._names = Names(self._roots)
        self._look_at_parameters("parameter", self._roots[-1:])
        self._hook_modules()

    def _head(self) -> dict:
        distributed = torch.distributed
        running = distributed.is_available() and distributed.is_initialized()
        return {
            "version": 1,
            "rank": distributed.get_rank() if running else 0,
            "world": distributed.get_world_size() if running else 1,
            "axes": axes_of(self._roots, self._request.layouts) if running else {},
            "steps": self._step + 1,
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
            "engine": engines.name_of(self._roots),
            "several": self._in_several_roots(),
            "lost": sorted(self._lost),
        }

    def _in_several_roots(self) -> list:
        """Lists the modules that several chunks of a model have: none of them is that of the whole."""
        names = [{self._names.of(root, path) or "model" for path, _ in root.named_modules()} for root in self._roots]
        return sorted(name for name in set().union(*names) if sum(name in own for own in names) > 1)

    def _finish_step(self) -> None:
        if not self._due:
            return
        self._due = False
        self._look_at_parameters("updated")
        self._look_at_states()

    @property
    def records(self) -> bool:
        """Whether a step is recorded."""
        return self._record is not None

    def add(self, phase: str, name: str, tensor: torch.Tensor, place: Optional[dict] = None) -> None:
        """Adds a tensor to the step."""
        self._record.add(phase, self._step, name, tensor, place)

    # ---- parameters, gradients

    def _parameters(self, roots: Optional[list] = None) -> Any:
        for root in self._roots if roots is None else roots:
            shards = is_fsdp(root)
            for path, module in root.named_modules():
                for name, parameter in module._parameters.items():
                    if parameter is None:
                        continue
                    full = self._names.of(root, f"{path}.{name}" if path else name)
                    yield full, parameter, parameter_place(module, full, parameter, shards)

    def _look_at_parameters(self, phase: str, roots: Optional[list] = None) -> None:
        kept_alike = set().union(*(promised_replicas(root) for root in self._roots))
        for name, parameter, place in self._parameters(roots):
            alike = {"replica": ["dp"]} if id(parameter) in kept_alike and "boxes" not in place else {}
            with engines.whole_parameter(parameter) as whole:
                self._record.add(phase, self._step, name, whole, {**place, **alike})

    def look_at_gradients(self, phase: str, optimizer: Any = None) -> None:
        """Looks at all gradients; with an engine's optimizer at those that it keeps."""
        known: set = set()
        for name, parameter, place in self._parameters():
            if not parameter.requires_grad or id(parameter) in known:
                continue
            known.add(id(parameter))
            gradient, more = engines.gradient_of(parameter, optimizer)
            if gradient is None:
                self._record.fact(self._step, f"no_{phase}", name)
                continue
            own = place_of(gradient, is_fsdp(self._roots[0])) or place
            if "whole" in own and list(local(gradient).shape) == own["whole"] and not own.keys() & {"partial", "mean"}:
                own = {}  # a whole one of a parameter that is divided
            self._record.add(phase, self._step, name, gradient, {**own, **more})

    def _note_local(self) -> None:
        for name, (gradient, place) in self._local.items():
            self._record.add("local", self._step, name, gradient, place)
        self._local.clear()

    def before_reduction_is_used(self, optimizer: Any = None) -> None:
        """Takes the gradients once in a step, before they are clipped."""
        if self._gradients_seen or self._record is None:
            return
        self._gradients_seen = True

        def gradients() -> None:
            self._note_local()
            self.look_at_gradients("gradient", optimizer)

        self.unseen(gradients)

    def clipped(self, norm: Any, limit: Any) -> None:
        """Notes what a clipping has computed and was asked for."""
        if self._record is None:
            return

        def clipping() -> None:
            whole = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
            self._record.fact(self._step, "norm", float(whole))
            self._record.fact(self._step, "limit", float(limit))

        self.unseen(clipping)

    def within(self, engine: Any) -> None:
        """Tells that an engine is in a step of its own, and with None that the step is over."""
        self._engine = engine
        if engine is None and self._record is not None and self._due:
            self._ended()

    def _look_at_states(self) -> None:
        known = {id(parameter): (name, place) for name, parameter, place in self._parameters()}
        for optimizer in engines.plain_optimizers(self._roots):
            for parameter, state in optimizer.state.items():
                if id(parameter) not in known:
                    continue
                name, place = known[id(parameter)]
                for key in _MOST_PARAMETER_STATES:
                    value = state.get(key) if isinstance(state, dict) else None
                    if isinstance(value, torch.Tensor) and value.dim():
                        self._record.add("state", self._step, f"{name} {key}", value, place)

    # ---- modules

    def _hook_modules(self) -> None:
        for root in self._roots:
            inner = innermost(root)
            for path, module in root.named_modules():
                if id(module) in self._hooked:
                    continue
                self._hooked.add(id(module))
                leaf = next(module.children(), None) is None
                name = self._names.of(root, path) or "model"
                if name != "model" or module is inner:  # not what wraps the model
                    module.register_forward_pre_hook(self.shielded(functools.partial(self._dropouts.entered, name)))
                    module.register_forward_hook(self.shielded(functools.partial(self._after, name=name, leaf=leaf)))
                if module is root:
                    # What a replay exchanges is exchanged by then.
                    module.register_forward_hook(self.shielded(self._inputs), with_kwargs=True)
                for own, parameter in module._parameters.items():
                    self._hook_parameter(root, module, path, own, parameter)

    def _hook_parameter(self, root: Any, module: Any, path: str, own: str, parameter: Any) -> None:
        if parameter is None or not parameter.requires_grad or id(parameter) in self._hooked or not parameter.numel():
            return
        if hasattr(parameter, "placements") or hasattr(
            parameter, "ds_id"
        ):  # sharded: what arrives here is no whole one
            return
        self._hooked.add(id(parameter))
        name = self._names.of(root, f"{path}.{own}" if path else own)
        place = parameter_place(module, name, parameter, False)

        def add(gradient: torch.Tensor) -> None:
            if self._record is None or gradient.shape != parameter.shape or gradient.layout is not torch.strided:
                return
            sofar = self._local.get(name)
            wide = gradient.detach().float()
            self._local[name] = (wide.clone() if sofar is None else sofar[0].add_(wide), place)

        parameter.register_hook(self.shielded(lambda gradient: _core.run_unseen(lambda: add(gradient))))

    def _inputs(self, module: torch.nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        if self._record is None or in_backward():
            return
        given = leaves_of({**{f"arg{place}": value for place, value in enumerate(args)}, **kwargs})
        number = self._calls.get("model", 0)
        for key, leaf in given.items():
            if isinstance(leaf, torch.Tensor):
                full = f"model {key}#{number}"
                _core.run_unseen(functools.partial(self._record.add, "input", self._step, full, leaf, place_of(leaf)))

    def _after(self, module: torch.nn.Module, args: tuple, output: Any, name: str, leaf: bool) -> Any:
        if self._record is None or in_backward():
            return None
        self._dropouts.left(name)
        number = self._calls[name] = self._calls.get(name, -1) + 1
        if leaf and self._rounding is not None:
            output = rebuilt(output, lambda _, value: self._rounding.rounded(value))
        for key, value in leaves_of(output).items():
            if not isinstance(value, torch.Tensor) or not value.is_floating_point():
                continue
            full = f"{name}#{number}" if key == "batch" else f"{name} {key}#{number}"
            _core.run_unseen(functools.partial(self._output, full, value))
        return output if leaf and self._rounding is not None else None

    def _output(self, name: str, value: torch.Tensor) -> None:
        step = self._step
        self._record.add("forward", step, name, value, place_of(value))
        if not value.requires_grad or value.is_leaf:  # a parameter that a module returns has one gradient, of all calls
            return

        def backward(gradient: torch.Tensor) -> Any:
            changed = self._rounding.rounded(gradient) if self._rounding is not None else None
            seen = gradient if changed is None else changed
            if self._record is not None:
                _core.run_unseen(lambda: self._record.add("backward", step, name, seen, place_of(seen)))
            return changed

        value.register_hook(self.shielded(backward))

    # ---- functions of PyTorch

    def _watch(self) -> None:
        self._watch_backward()
        self._watch_clipping()
        self._dropouts.watch()
        engines.watch(self)

    def _watch_backward(self) -> None:
        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._record is not None and not in_backward():
                # A list that is made while it is read is left to PyTorch.
                given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
                self.shielded(self._losses)([one for one in given if isinstance(one, torch.Tensor)])
            return original(tensors, *args, **kwargs)

        torch.autograd.backward = backward

    def _losses(self, tensors: list) -> None:
        for tensor in tensors:
            if tensor.numel() == 1:
                number = self._calls["loss"] = self._calls.get("loss", -1) + 1
                self._record.add("loss", self._step, f"loss#{number}", tensor.detach().float())

    def _watch_clipping(self) -> None:
        module = sys.modules["torch.nn.utils.clip_grad"]
        original = module.clip_grad_norm_

        @functools.wraps(original)
        def clip(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            self.before_reduction_is_used()
            norm = original(parameters, max_norm, *args, **kwargs)
            self.clipped(norm, max_norm)
            return norm

        for place in (torch.nn.utils, module):
            place.clip_grad_norm_ = clip

    def before_step(self, optimizer: Any) -> None:
        """Takes the gradients that an optimizer of PyTorch is given."""
        if self._record is None or self._due:
            return

        self.before_reduction_is_used()

        def clipped_gradients() -> None:
            if self._engine is not None:
                self._look_at_clipped(optimizer)
            elif self._calls.setdefault("clipped", 0) == 0:
                self._calls["clipped"] = 1
                self.look_at_gradients("clipped")

        self.unseen(clipped_gradients)

    def _look_at_clipped(self, optimizer: Any) -> None:
        """Looks at what an engine gives to an optimizer of PyTorch, where that is a whole parameter's, or a copy's of it."""
        known = {}
        for name, parameter, place in self._parameters():
            known[id(parameter)] = known[id(getattr(parameter, "main_param", None))] = (name, parameter, place)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name, own, place = known.get(id(parameter), ("", None, {}))
                if own is not None and parameter.grad is not None and parameter.grad.shape == own.shape:
                    self._record.add("clipped", self._step, name, parameter.grad, place)

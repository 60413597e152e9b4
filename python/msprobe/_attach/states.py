"""Every state that a training carries from one step into the next, as checksums by kind and name.

What frameworks call state is found by its type on the heap: models, optimizers, schedulers, scalers, samplers, generators of
random numbers. What scripts make themselves is found by its class or by the variable that holds it.
"""

import gc
import importlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase

from .. import _core
from .forward_call import is_users_module
from .generators import held_generators, is_generator
from .leaves import Leaves, generator_state, is_users_object
from .tensor_checksum import checksum
from .variables import Variables

# Packages whose objects with state_dict() and load_state_dict() are state of a training.
_WITH_STATE = ("torchdata", "transformers", "diffusers", "timm", "torch.optim.swa_utils", "lightning", "torchmetrics")
_OF_TRAINER = ("global_step", "epoch", "best_metric", "best_global_step", "num_input_tokens_seen", "total_flos")


_OF_OPTIMIZERS = ("defaults", "state", "param_groups")
_OF_TORCH = (
    "_optimizer_",
    "_hook_for",
    "_patch",
    "_opt_called",
    "_step_count",
    "_zero_grad",
    "_warned",
    "_step_supports",
)


class Snapshot:
    """The states at one moment: `kinds` maps a kind to names and their checksums or values.

    `owners` maps the objects of the program to `saves` where they have a state_dict(), else to `holds`.
    """

    def __init__(self, roots: list, batch: list):
        self.kinds: dict = {}
        self.owners: dict = {}
        self._roots = roots
        self._variables = Variables(_storages(batch), roots)
        self._heap = _Heap()
        self._taken: set = set()  # ids of objects that have a kind already
        self._parameter_names: dict = {}
        self._take()

    def _put(self, kind: str, name: str, value: str) -> None:
        entries = self.kinds.setdefault(kind, {})
        unique, number = name, 1
        while unique in entries:
            number += 1
            unique = f"{name}#{number}"
        entries[unique] = value

    def _take(self) -> None:
        for number, root in enumerate(self._roots):
            self._module("parameter", root, f"{number}." if number else "", of_root=True)
        self._other_modules()
        self._optimizers()
        for kind, found in (("scheduler", self._heap.schedulers), ("scaler", self._heap.scalers)):
            for owner in found:
                self._taken.add(id(owner))
                self._leaves(kind, self._name(owner), _state_dict(owner))
        self._random()
        self._samplers()
        self._trainer()
        self._objects()
        self._loose()

    def _name(self, owner: Any) -> str:
        return self._variables.name_of(owner) or type(owner).__name__

    def _leaves(self, kind: str, name: str, value: Any) -> None:
        found = Leaves()
        found.add(name, value)
        for leaf, text in {**found.tensors, **found.numbers}.items():
            self._put(kind, leaf, text)

    # ---- models

    def _module(self, kind: str, root: torch.nn.Module, prefix: str, of_root: bool) -> None:
        for name, parameter in root.named_parameters():
            self._put(kind, prefix + name, checksum(parameter))
            if of_root:
                self._parameter_names.setdefault(id(parameter), prefix + name)
                if not parameter.requires_grad:
                    self._put("mode", f"{prefix}{name}.requires_grad", "False")
        for path, module in root.named_modules():
            of_norm = isinstance(module, _NormBase)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    own = ("batch_norm" if of_norm else "buffer") if of_root else kind
                    self._put(own, prefix + (f"{path}." if path else "") + name, checksum(buffer))
            if of_root and not module.training:
                self._put("mode", f"{prefix}{path or type(module).__name__}.training", "False")
            if of_root and is_users_module(type(module).__module__):
                self._numbers_of(module, prefix + path)

    def _numbers_of(self, owner: Any, path: str) -> None:
        for name, value in vars(owner).items():
            if name != "training" and isinstance(value, (bool, int, float)):
                self._put("number", f"{path}.{name}" if path else name, repr(value))

    def _other_modules(self) -> None:
        """Handles models that are not called in training, such as averages of the weights."""
        parts = {id(part) for module in self._heap.modules for part in module._modules.values() if part is not None}
        roots = {id(part) for root in self._roots for part in root.modules()}
        for module in self._heap.modules:
            if id(module) in parts or id(module) in roots:
                continue
            if any(id(parameter) in self._parameter_names for parameter in module.parameters()):
                continue
            self._module("module", module, self._name(module) + ".", of_root=False)

    # ---- optimizers

    def _optimizers(self) -> None:
        for optimizer in self._heap.optimizers:
            self._taken.add(id(optimizer))
            if isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
                continue  # a wrapper
            self._attributes(optimizer)
            kind = type(optimizer).__name__
            names: dict = {}
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if key != "params":
                        self._leaves("hyperparameter", f"{kind} group {number} {key}", value)
                for place, parameter in enumerate(group["params"]):
                    names[id(parameter)] = self._parameter_names.get(id(parameter), f"group {number}[{place}]")
            for parameter, state in list(optimizer.state.items()):
                owner = names.get(id(parameter), str(parameter) if isinstance(parameter, str) else "other")
                self._leaves("optimizer", f"{kind} {owner}", state)

    def _attributes(self, owner: Any) -> None:
        """Takes what an object keeps beside what its state_dict() holds, such as a count of its own."""
        users = is_users_module(type(owner).__module__)
        held = {}
        for key, value in vars(owner).items():
            if key not in _OF_OPTIMIZERS and (users or key[0] != "_") and not key.startswith(_OF_TORCH):
                held[key] = value
        if held:
            self._loose_value(self._name(owner), held)

    # ---- random numbers and data

    def _random(self) -> None:
        self._put("random", "python", f"{_core.crc32_of(repr(random.getstate()).encode()):08x}")
        self._put("random", "torch", checksum(torch.get_rng_state()))
        numpy = sys.modules.get("numpy")
        if numpy is not None and getattr(numpy, "random", None) is not None:
            self._put("random", "numpy", generator_state(numpy.random.mtrand._rand) or "")
        for device in ("cuda", "npu"):
            backend = getattr(torch, device, None)
            if backend is not None and backend.is_available() and backend.is_initialized():
                for number, state in enumerate(backend.get_rng_state_all()):
                    self._put("random", f"{device}:{number}", checksum(state))

    def _samplers(self) -> None:
        known: set = set()
        for owner in self._heap.samplers:
            self._taken.add(id(owner))
            generator = getattr(owner, "generator", None)
            if generator is not None and id(generator) not in known:
                known.add(id(generator))
                self._generator(generator, self._name(owner))
            if isinstance(owner, torch.utils.data.Sampler):
                for name, value in vars(owner).items():
                    if isinstance(value, (bool, int, float)):
                        self._put("sampler", f"{type(owner).__name__}.{name}", repr(value))
                if callable(getattr(owner, "state_dict", None)):
                    self._leaves("sampler", type(owner).__name__, _state_dict(owner))
        for generator, name in self._variables.generators():
            if id(generator) not in known:
                known.add(id(generator))
                self._generator(generator, name)
        for generator, name in held_generators(self._heap.generators, known):
            self._generator(generator, name)

    def _generator(self, generator: Any, owner: str) -> None:
        state = generator_state(generator)
        if state is not None:
            self._put("random", f"{type(generator).__name__} of {owner}", state)

    # ---- what scripts and trainers make

    def _trainer(self) -> None:
        for owner in self._heap.trainer_states:
            self._taken.add(id(owner))
            for name in _OF_TRAINER:
                self._leaves("trainer", name, getattr(owner, name, None))
        for owner in self._heap.callbacks:
            self._taken.add(id(owner))
            self._leaves("trainer", type(owner).__name__, owner.state().get("attributes"))

    def _objects(self) -> None:
        for owner in self._heap.with_state:
            if id(owner) not in self._taken:
                self._taken.add(id(owner))
                self._leaves("object", self._name(owner), _state_dict(owner))
                if is_users_module(type(owner).__module__) and hasattr(owner, "__dict__"):
                    self.owners[self._name(owner)] = "saves"
                    self._numbers_of(owner, self._name(owner))
        for owner in self._heap.of_user:
            if id(owner) not in self._taken and not self._variables.skips(owner):
                self.owners.setdefault(self._name(owner), "holds")
                self._loose_value(self._name(owner), owner)

    def _loose(self) -> None:
        for name, value in self._variables.values():
            if id(value) not in self._taken:
                self._loose_value(name, value)

    def _loose_value(self, name: str, value: Any) -> None:
        found = Leaves(lambda part: id(part) in self._taken or self._variables.skips(part))
        found.add(name, value)
        for kind, leaves in (("tensor", found.tensors), ("number", found.numbers)):
            for leaf, text in leaves.items():
                if leaf not in self.kinds.get(kind, {}):
                    self._put(kind, leaf, text)


class _Heap:
    """The objects of a process that hold state, by what they are, in the order in which they were made."""

    def __init__(self) -> None:
        self.modules: list = []
        self.optimizers: list = []
        self.schedulers: list = []
        self.scalers: list = []
        self.samplers: list = []
        self.generators: list = []
        self.with_state: list = []
        self.of_user: list = []
        self.trainer_states: list = []
        self.callbacks: list = []
        groups = list(self._groups())
        for value in gc.get_objects():
            kind = type(value)
            if is_generator(kind):
                self.generators.append(value)
                continue
            for classes, found in groups:
                # issubclass of the type: isinstance would run __class__ of proxies.
                if issubclass(kind, classes):
                    found.append(value)
                    break
            else:
                self._by_module(kind, value)
        self.optimizers = [o for o in self.optimizers if getattr(o, "param_groups", None)]

    def _groups(self) -> Iterator[tuple]:
        scaler = [torch.amp.GradScaler] if hasattr(torch.amp, "GradScaler") else [torch.cuda.amp.GradScaler]
        yield torch.nn.Module, self.modules
        yield torch.optim.Optimizer, self.optimizers
        yield torch.optim.lr_scheduler.LRScheduler, self.schedulers
        yield tuple(scaler), self.scalers
        yield (torch.utils.data.Sampler, torch.utils.data.DataLoader), self.samplers
        if "transformers.trainer_callback" in sys.modules:
            callbacks = importlib.import_module("transformers.trainer_callback")
            yield callbacks.TrainerState, self.trainer_states
            yield callbacks.ExportableState, self.callbacks

    def _by_module(self, kind: type, value: Any) -> None:
        name = kind.__module__
        if not isinstance(name, str) or issubclass(kind, (type, BaseException)):
            return
        users = name == "__main__" or is_users_module(name)
        if not users and not name.startswith(_WITH_STATE):
            return
        if callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None)):
            self.with_state.append(value)
        elif users and is_users_object(value) and not issubclass(kind, torch.utils.data.Dataset):
            self.of_user.append(value)


def _state_dict(owner: Any) -> Any:
    try:
        state = owner.state_dict()
    except (RuntimeError, ValueError, TypeError, AttributeError, KeyError, NotImplementedError) as error:
        return f"state_dict() failed: {type(error).__name__}"
    return {k: v for k, v in state.items() if not callable(v)} if isinstance(state, dict) else state


def _storages(tensors: list) -> set:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.layout is torch.strided}

"""What the laws of a training look at: its parameters by name, the groups of its optimizer, samples and sums of tensors."""

from collections.abc import Iterator
from typing import Any, Optional

import torch

from ...._compat import distributed_module
from ...._monitor.laws import LawBook
from ..optimizers import OptimizerView, gradient_of
from ..values import local_part

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Scene:
    """One model with its optimizer."""

    def __init__(self, models: list, view: OptimizerView, micro_batches: int, main_grad: bool, book: LawBook) -> None:
        """Names the parameters.

        Args:
            models: The chunks of the model.
            view: Of the optimizer.
            micro_batches: Backward passes of a step.
            main_grad: Whether the trainer keeps gradients in main_grad.
            book: Where laws are written down.
        """
        self.models, self.view, self.book = models, view, book
        self.micro_batches = max(micro_batches, 1)
        self.main_grad = main_grad
        self.armed = False
        self.count = 0  # steps so far
        self.parameters: dict = {}  # name -> parameter
        self.owner: dict = {}  # name -> module that holds it
        for prefix, model in self.named_models():
            for path, module in model.named_modules():
                for name, parameter in module.named_parameters(recurse=False):
                    self.parameters.setdefault(prefix + (f"{path}.{name}" if path else name), parameter)
                    self.owner.setdefault(prefix + (f"{path}.{name}" if path else name), module)
        self.names: dict = {}  # id of a parameter -> its first name
        for name, parameter in self.parameters.items():
            self.names.setdefault(id(parameter), name)
        kinds = {type(m).__name__ for model in models for m in model.modules()}
        self.is_fsdp1 = "FullyShardedDataParallel" in kinds
        self.is_sharded = self.is_fsdp1 or any(is_dtensor(p) for p in self.parameters.values())
        self.loss_factor: Optional[float] = None  # of the backward pass's root to the loss
        self.loss_is_product = False  # the given loss comes of a division or a product: by the micro steps, perhaps
        self.accumulated: dict = {}  # name -> (sample after the last backward pass, its gradient's type)
        self.passes: dict = {}  # name -> backward passes since the last step
        self.ran: set = set()  # ids of modules that ran in this step
        self.clipped = False  # by a function of torch, in this step
        self.passed_on: set = set()  # ids of modules whose output another module was given
        self.compiled = 0  # regions that torch.compile has compiled, in this step
        self.outside = 0  # of these, those that began in no forward of the model that is seen, nor in a backward pass
        self.unknown = 0  # those that may do anything: in no such forward, and no modules
        self.inside = 0  # forwards of the model that are seen and run
        self.missed_step = False  # a step of the optimizer came between that was not seen
        self._version = 0
        distributed = distributed_module()
        known = distributed.is_available() and distributed.is_initialized()
        self.ranks = distributed.get_world_size() if known else 1
        self.several_ranks = self.ranks > 1

    def named_models(self) -> Iterator[tuple]:
        """(prefix of names, chunk)."""
        for chunk, model in enumerate(self.models):
            yield ("" if len(self.models) == 1 else f"{chunk}:"), model

    def named_modules(self) -> Iterator[tuple]:
        """(name, module) of all chunks."""
        for prefix, model in self.named_models():
            for path, module in model.named_modules():
                yield prefix + path, module

    @property
    def torch_optimizer(self) -> Any:
        """What holds param_groups and state: of ZeroRedundancyOptimizer the part of this rank."""
        optimizer = self.view.optimizer
        return getattr(optimizer, "optim", None) or optimizer

    def groups(self) -> dict:
        """Id of a parameter -> its group, of all parts of the optimizer."""
        found: dict = {}
        for part in self.view.parts:
            for owner in (part, getattr(part, "optimizer", None)):
                for group in getattr(owner, "param_groups", None) or ():
                    found.update({id(p): group for p in group["params"]})
        return found

    def trained(self) -> dict:
        """Name -> parameter of those that require a gradient and are in the optimizer; each once."""
        groups = self.groups()
        return {
            name: p
            for name, p in self.parameters.items()
            if p.requires_grad and self.names[id(p)] == name and (id(p) in groups or self.has_masters)
        }

    @property
    def has_masters(self) -> bool:
        """Whether the optimizer updates copies of its own (Megatron-LM, DeepSpeed)."""
        return type(self.view) is not OptimizerView

    def end_step(self) -> None:
        """A step is over, or was left out: backward passes count from 0 again."""
        for known in (self.passes, self.accumulated, self.ran, self.passed_on):
            known.clear()
        self.clipped, self.loss_factor = False, None
        self.compiled = self.outside = self.unknown = self.inside = 0

    def region(self, _: str, is_module: bool) -> None:
        """Compiled code begins to run, which is not seen."""
        self.compiled += 1
        if not self.inside:
            self.unknown += not is_module
            self.outside += torch._C._current_graph_task_id() == -1

    def unseen(self, law: str, regions: int) -> bool:
        """Whether such regions may have done what the law looks for; the law is then not held."""
        if regions:
            self.book.not_checked(law, "steps in which compiled code may have done it are left out")
        return regions > 0

    def look_for_missed(self) -> None:
        """Right before a step: whether the optimizer stepped since the last one that was seen."""
        self.missed_step = bool(self.unknown and self.count and self._versions() != self._version)

    def remember_versions(self) -> None:
        """Right after a step."""
        self._version = self._versions()

    def _versions(self) -> int:
        return sum(parameter._version for parameter in self.parameters.values())

    def split_used(self, dead: list, alive: list) -> tuple:
        """Splits parameters without a gradient: those of modules whose output goes on to others, and those of the rest.

        All are used where one of them is: what lies before a break of the graph has no gradient, whatever it feeds.
        """
        if not dead or not alive:
            return dead, []
        if self.unseen("gradients_present", self.compiled):
            return [], []
        silent = set(dead)
        for name, module in self.named_modules():
            own = [n for n in self.parameters if n.startswith(f"{name}.")] if name else []
            if own and all(n in silent for n in own) and id(module) in self.passed_on:
                return dead, []
        return [], dead

    def gradient(self, parameter: Any) -> Optional[torch.Tensor]:
        """The gradient that is there, as this rank holds it."""
        found = gradient_of(parameter, self.main_grad)
        return found if found is not None and found.layout is torch.strided else None

    def sample(self, tensor: Any) -> torch.Tensor:
        """Some elements of a tensor in float64, always the same ones."""
        return sample_of(tensor, self.book.config.elements)


def is_dtensor(tensor: Any) -> bool:
    """Tells whether a tensor is spread over ranks."""
    return hasattr(tensor, "placements") and hasattr(tensor, "to_local")


def sample_of(tensor: Any, count: int) -> torch.Tensor:
    """Some elements of what this rank holds, in float64 on the host."""
    plain = local_part(tensor.detach())
    flat = plain.reshape(-1)
    if flat.numel() > count:
        flat = flat[:: flat.numel() // count][:count]
    return flat.to("cpu", torch.float64, copy=True)


def bit_sums(tensors: list) -> list:
    """A number for each tensor that another bit of it changes, exact; one copy for each device."""
    sums = []
    for tensor in tensors:
        plain = local_part(tensor.detach())
        if plain.is_complex():
            plain = torch.view_as_real(plain)
        plain = plain.contiguous().reshape(-1)
        sums.append(plain.view(_WORDS[plain.element_size()]).sum(dtype=torch.int64))
    out: list = [0] * len(tensors)
    by_device: dict = {}
    for place, value in enumerate(sums):
        by_device.setdefault(value.device, []).append((place, value))
    for entries in by_device.values():
        for (place, _), value in zip(entries, torch.stack([v for _, v in entries]).tolist()):
            out[place] = value
    return out


def norms_of(tensors: list) -> list:
    """The norm of each tensor as float64; one copy for each device."""
    out: list = [0.0] * len(tensors)
    by_device: dict = {}
    for place, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append((place, tensor))
    for device, entries in by_device.items():
        wide = torch.float64 if device.type == "cpu" else torch.float32
        values = [torch.linalg.vector_norm(t.detach(), dtype=wide) for _, t in entries]
        for (place, _), value in zip(entries, torch.stack(values).tolist()):
            out[place] = value
    return out


def rounding(dtype: torch.dtype) -> float:
    """Half a unit in the last place, relative."""
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point or dtype.is_complex else 0.0


def is_near(
    found: torch.Tensor, expected: torch.Tensor, size: torch.Tensor, dtype: torch.dtype, slack: float = 8
) -> bool:
    """Tells whether two samples are equal but for rounding; `size`: what the rounding is relative to."""
    if found.shape != expected.shape or not torch.isfinite(found).all():
        return False
    allowed = slack * rounding(dtype) * size + 1e-300
    return bool(((found - expected).abs() <= allowed).all())

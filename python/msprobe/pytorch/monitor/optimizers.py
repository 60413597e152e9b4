"""What optimizers hold of a parameter: its gradient after the reduction, its moments, its full-precision copy.

Each kind of optimizer that keeps flat or partitioned copies has its own view; the default fits those of torch.optim.
"""

import re
from typing import Any, Optional

import torch

from ..living import held_by
from .values import local_part

_SHARDS = re.compile("ZeroRedundancy|Distributed")


class OptimizerView:
    """An optimizer whose state is by parameter, as in torch.optim and apex."""

    def __init__(self, optimizer: Any) -> None:
        """Looks at this optimizer; nothing is kept of it."""
        self.optimizer = optimizer
        self._masters: dict = {}  # id of a parameter -> (parameter, full-precision copy or shard)

    @property
    def is_sharded(self) -> bool:
        """Whether each rank has the state of some parameters only."""
        return type(self).__name__ == "DeepSpeedView" or any(_SHARDS.search(type(part).__name__) for part in self.parts)

    @property
    def parts(self) -> list:
        """The optimizers of a chain or a container, or the only one."""
        chain = getattr(self.optimizer, "chained_optimizers", None)
        return list(chain or _several_of(self.optimizer) or [self.optimizer])

    def states(self) -> list:
        """The states of all parts, as they are now."""
        found = []
        for part in self.parts:
            for owner in (part, getattr(part, "optimizer", None), getattr(part, "optim", None)):
                state = getattr(owner, "param_to_cpu_states_map", None) or getattr(owner, "state", None)
                if state:
                    found.append(state)
                    break
        return found

    def refresh(self) -> None:
        """Finds the full-precision copies of parameters."""

    def master(self, parameter: Any) -> Any:
        """What the optimizer updates in place of the parameter."""
        known = self._masters.get(id(parameter))
        return known[1] if known is not None else parameter

    def gradient(self, name: str, parameter: Any, main_grad: bool, first: bool) -> Optional[torch.Tensor]:
        """The gradient that the optimizer is about to use; None: there is none."""
        if self._masters and id(parameter) not in self._masters:
            return None
        gradient = gradient_of(parameter, main_grad)
        if gradient is None:
            return None
        here = self.master(parameter)
        if self._masters and here is not None and here.numel() != parameter.numel():
            # The shard begins in the middle of the first parameter of this rank, or ends in that of the last.
            flat = gradient.flatten()
            return flat[-here.numel() :] if first else flat[: here.numel()]
        return gradient

    def moments(self, parameter: Any, states: list) -> tuple:
        """(exp_avg, exp_avg_sq) in these states, None where they have none."""
        key = self.master(parameter)
        for state in states:
            if key is not None and key in state:
                own = state[key]
                return self.narrow(parameter, own.get("exp_avg")), self.narrow(parameter, own.get("exp_avg_sq"))
        return None, None

    def weight(self, parameter: Any) -> Any:
        """What this rank has of the parameter between steps."""
        return parameter

    def elsewhere(self, parameter: Any) -> bool:
        """Whether only other ranks have a part of its gradient."""
        return False

    def narrow(self, parameter: Any, flat: Any) -> Any:
        """The parameter's part of a state; the state itself where it is not flat."""
        return flat


class MegatronView(OptimizerView):
    """Megatron-LM: half-precision parameters with copies, or shards of copies, in full precision."""

    _GROUPS = (
        ("model_float16_groups", "shard_fp32_from_float16_groups"),
        ("float16_groups", "fp32_from_float16_groups"),
    )

    def refresh(self) -> None:
        """Finds the copies, which exist when the optimizer does."""
        if self._masters:
            return
        for part in self.parts:
            for model_name, master_name in self._GROUPS:
                groups = zip(getattr(part, model_name, ()), getattr(part, master_name, ()))
                for model_group, master_group in groups:
                    self._masters.update({id(p): (p, m) for p, m in zip(model_group, master_group)})


class DeepSpeedView(OptimizerView):
    """DeepSpeed's ZeRO: the state is one flat tensor for each group of parameters, cut into partitions."""

    _GROUPS = (
        ("bit16_groups", "single_partition_of_fp32_groups"),  # stages 1 and 2
        ("fp16_groups", "fp32_partitioned_groups_flat"),  # stage 3
        ("bf16_groups", "fp32_groups_flat_partition"),  # bf16 without partitions of gradients
    )

    def __init__(self, optimizer: Any) -> None:
        """Looks at the groups."""
        super().__init__(optimizer)
        self._place: dict = {}  # id of a parameter -> (group, index in it)
        self.stage3 = hasattr(optimizer, "fp32_partitioned_groups_flat")
        for model_name, master_name in self._GROUPS:
            groups = getattr(optimizer, model_name, None)
            masters = getattr(optimizer, master_name, None)
            if groups is None or masters is None:
                continue
            for number, (group, master) in enumerate(zip(groups, masters)):
                for index, parameter in enumerate(group):
                    self._place[id(parameter)] = (number, index)
                    self._masters[id(parameter)] = (parameter, master)
            break

    def _slice(self, parameter: Any) -> Optional[tuple]:
        """(begin, elements) of the parameter in this rank's partition; None: it is in another's."""
        if self.stage3:
            return tuple(self.optimizer.grad_position[self.optimizer.get_param_id(parameter)][1:])
        number, _ = self._place[id(parameter)]
        mapping = self.optimizer.state_dict()["param_slice_mappings"][number]
        address = mapping.get(self.optimizer.param_names.get(parameter))
        return None if address is None else (address.start, address.numel)

    def gradient(self, name: str, parameter: Any, main_grad: bool, first: bool) -> Optional[torch.Tensor]:
        """The averaged gradient of this rank's partition."""
        if id(parameter) not in self._place:
            return None
        number, index = self._place[id(parameter)]
        place = self._slice(parameter)
        if place is None:
            return None
        whole = getattr(self.optimizer, "fp32_groups_gradient_dict", None)
        if whole is not None:
            return whole[number][index]
        if getattr(self.optimizer, "cpu_offload", False):
            flat = self.optimizer.single_partition_of_fp32_groups[number].grad
            return flat.narrow(0, *place)
        gradients = self.optimizer.averaged_gradients[number]
        if self.stage3:
            return gradients[index]
        group = [p for p, _ in self._masters.values() if self._place[id(p)][0] == number]
        skipped = 0
        while skipped < len(group) and self._slice(group[skipped]) is None:
            skipped += 1
        return gradients[index - skipped]

    def weight(self, parameter: Any) -> Any:
        """Of a parameter that stage 3 has released its partition, in full precision as the optimizer steps it."""
        flat = self.master(parameter)
        if parameter.numel() or not self.stage3 or flat is None:
            return parameter
        begin, count = self._slice(parameter) or (0, 0)
        return flat.narrow(0, begin, count) if begin + count <= flat.numel() else parameter  # it may be offloaded

    def elsewhere(self, parameter: Any) -> bool:
        """Whether its partition is that of another rank."""
        return id(parameter) in self._place and self._slice(parameter) is None

    def narrow(self, parameter: Any, flat: Any) -> Any:
        """The parameter's part of the flat state."""
        place = self._slice(parameter) if flat is not None and id(parameter) in self._place else None
        return flat.narrow(0, *place) if place is not None else None


def gradient_of(parameter: Any, main_grad: bool) -> Optional[torch.Tensor]:
    """The gradient that is there now: main_grad where the trainer keeps one, this rank's shard of a DTensor."""
    gradient = getattr(parameter, "main_grad", None) if main_grad else None
    if gradient is None:
        gradient = parameter.grad
    return None if gradient is None else local_part(gradient)


def _several_of(optimizer: Any) -> list:
    """Those of a container, which steps none of its own."""
    return held_by(optimizer) if hasattr(optimizer, "optimizers") else []


_VIEWS = {
    "FP32Optimizer": OptimizerView,
    "Float16OptimizerWithFloat16Params": MegatronView,
    "DistributedOptimizer": MegatronView,
    "SwapDistributedOptimizer": MegatronView,
    "BF16_Optimizer": DeepSpeedView,
    "DeepSpeedZeroOptimizer": DeepSpeedView,
    "DeepSpeedZeroOptimizer_Stage3": DeepSpeedView,
}


def view_of(optimizer: Any) -> OptimizerView:
    """Returns the view of an optimizer, by the name of its class.

    Args:
        optimizer: Of any library.

    Returns:
        The view.

    Raises:
        TypeError: It has neither a state nor parameters, so nothing could be read.
    """
    while type(optimizer).__name__ == "AcceleratedOptimizer" or len(_several_of(optimizer)) == 1:
        (optimizer,) = held_by(optimizer)
    first = (getattr(optimizer, "chained_optimizers", None) or [optimizer])[0]
    kind = _VIEWS.get(type(first).__name__, OptimizerView)
    if kind is OptimizerView and not hasattr(first, "state") and not hasattr(first, "optimizer"):
        raise TypeError(f"{type(first).__name__} is no optimizer that the monitor can read: it has no state")
    return kind(optimizer)

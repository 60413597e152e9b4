"""What a tensor is over the ranks: names that count over the whole model, axes of parallelism, and the part that this rank has."""

import gc
import math
import re
import sys
from typing import Any, Optional

import torch

_WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")


def plain_path(path: str) -> str:
    """Returns the path of a module or parameter without what wraps its model."""
    path = _WRAPPERS.sub("", path + ".")[:-1]
    while path == "module" or path.startswith("module."):
        path = path[len("module.") :]
    return path


def innermost(root: torch.nn.Module) -> torch.nn.Module:
    """Returns the model in its wrappers."""
    for path, module in root.named_modules():
        if plain_path(path):
            break
        root = module
    return root


class Names:
    """Paths with the numbers that layers and experts have in the whole model."""

    def __init__(self, roots: list):
        self._numbers: dict = {}  # path of a layer -> its number
        self._experts = _experts_before()
        for root in roots:
            for path, module in root.named_modules():
                number = getattr(module, "layer_number", None)
                head, _, last = plain_path(path).rpartition(".")
                if last.isdigit() and isinstance(number, int) and head.rpartition(".")[2] == "layers":
                    self._numbers[(id(root), f"{head}.{last}")] = f"{head}.{number - 1}"

    def of(self, root: torch.nn.Module, path: str) -> str:
        """Returns the name of a path of this root."""
        name = plain_path(path)
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            number = self._numbers.get((id(root), ".".join(parts[:count])))
            if number is not None:
                name = ".".join([number, *parts[count:]])
                break
        if self._experts:
            name = re.sub(
                r"(?<=local_experts\.)\d+",
                lambda m: str(int(m[0]) + self._experts(root)),
                name,
            )
        return name


def _experts_before() -> Any:
    """Returns a function that counts the experts of the ranks before this one; None without expert parallelism."""
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return None
    rank, size = state.get_expert_model_parallel_rank(), state.get_expert_model_parallel_world_size()
    if size == 1:
        return None

    def before(root: torch.nn.Module) -> int:
        lists = [module for path, module in root.named_modules() if path.endswith("local_experts")]
        return len(lists[0]) * rank if lists else 0

    return before


# ---- axes


def axes_of(roots: list, declared: str) -> dict:
    """Maps each axis of parallelism to the ranks of this process's group, in their order."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return {}
    if declared:
        return _declared(declared)
    axes: dict = {}
    axes.update(_of_megatron())
    for root in roots:
        axes.update({name: ranks for name, ranks in _of_meshes(root).items() if name not in axes})
        for module in root.modules():
            group = getattr(module, "process_group", None)
            if isinstance(module, torch.nn.parallel.DistributedDataParallel) and group is not None:
                axes.setdefault("dp", distributed.get_process_group_ranks(group))
        if type(root).__name__ == "DeepSpeedEngine":
            axes.setdefault("dp", list(range(distributed.get_world_size())))
    return axes if set(axes) - {"dp"} else {**_of_any_mesh(), **axes}


def _of_any_mesh() -> dict:
    """Returns the axes of a mesh over all ranks that the script has made, for layers written by hand."""
    module = sys.modules.get("torch.distributed.device_mesh")
    world = torch.distributed.get_world_size()
    found = [
        value
        for value in (gc.get_objects() if module is not None else ())
        if type(value) is module.DeviceMesh and value.size() == world and value.mesh_dim_names
    ]
    if not found:
        return {}
    mesh = max(found, key=lambda one: one.ndim)
    groups = [mesh.get_group(dim) for dim in range(mesh.ndim)]
    return {
        _known_axis(name): torch.distributed.get_process_group_ranks(group)
        for name, group in zip(mesh.mesh_dim_names, groups)
    }


def _declared(text: str) -> dict:
    rank, world, before, axes = torch.distributed.get_rank(), torch.distributed.get_world_size(), 1, {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        first = rank - (rank // before % int(size)) * before
        axes[name.strip()] = [first + number * before for number in range(int(size))]
        before *= int(size)
    if before != world and "dp" not in axes:
        own = rank % before
        axes["dp"] = list(range(own, world, before))
    return axes


def _of_megatron() -> dict:
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return {}
    groups = {
        "tp": state.get_tensor_model_parallel_group(),
        "cp": state.get_context_parallel_group(),
        "dp": state.get_data_parallel_group(),
        "pp": state.get_pipeline_model_parallel_group(),
    }
    return {name: torch.distributed.get_process_group_ranks(group) for name, group in groups.items()}


def _mesh_axes(tensor: Any, shards_parameters: bool) -> list:
    """Lists the names of the dimensions of a DTensor's mesh; one without a name is of data parallelism in FSDP, else tp."""
    mesh = tensor.device_mesh
    if mesh.mesh_dim_names:
        return [_known_axis(name) for name in mesh.mesh_dim_names]
    if mesh.ndim == 1:
        return ["dp" if shards_parameters else "tp"]
    return [f"mesh{dim}" for dim in range(mesh.ndim)]


def _known_axis(name: str) -> str:
    """Names that people give to data parallelism."""
    lower = name.lower()
    if lower in ("dp", "fsdp", "ddp", "data", "data_parallel", "dp_shard", "shard", "dp_shard_cp"):
        return "dp"
    if lower in ("tp", "tensor", "tensor_parallel", "model", "mp"):
        return "tp"
    return lower


def is_fsdp(root: torch.nn.Module) -> bool:
    """Whether fully_shard() has taken a part of the model."""
    return any("FSDPModule" in (base.__name__ for base in type(m).__mro__) for m in root.modules())


def _of_meshes(root: torch.nn.Module) -> dict:
    axes: dict = {}
    shards = is_fsdp(root)
    for parameter in root.parameters():
        if not hasattr(parameter, "device_mesh"):
            continue
        mesh = parameter.device_mesh
        for dim, name in enumerate(_mesh_axes(parameter, shards)):
            axes.setdefault(name, torch.distributed.get_process_group_ranks(mesh.get_group(dim)))
    return axes


# ---- the part that this rank has


def place_of(tensor: torch.Tensor, shards_parameters: bool = False) -> dict:
    """Returns the shape of the whole of a DTensor and the box of it that lies here; {} of other tensors."""
    if not hasattr(tensor, "placements") or not hasattr(tensor, "device_mesh"):
        return {}
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    placements = tensor.placements
    place: dict = {}
    for name, placement in zip(_mesh_axes(tensor, shards_parameters), placements):
        if not placement.is_partial():
            continue
        how = {"sum": "partial", "avg": "mean"}.get(getattr(placement, "reduce_op", ""), "odd")
        if type(placement).__name__.startswith("_"):  # its parts are something else until they are reduced
            how = "odd"
        place.setdefault(how, []).append(name)
    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, placements)
    if list(shape) == list(tensor.to_local().shape):
        place |= {"whole": list(tensor.shape), "boxes": [[list(offset), list(shape)]]}
    return place


def parameter_place(module: Any, name: str, parameter: torch.Tensor, shards: bool) -> dict:
    """Returns the place of a parameter: of a DTensor, or by the attributes that Megatron gives to what it has split."""
    place = place_of(parameter, shards)
    if place or not getattr(parameter, "tensor_model_parallel", False):
        return place
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return {}
    expert = not getattr(parameter, "allreduce", True)
    size = _tensor_size(state, expert)
    rank = _tensor_rank(state, expert)
    if size == 1:
        return {}
    dim, shape = getattr(parameter, "partition_dim", None), list(parameter.shape)
    if not isinstance(dim, int) or not 0 <= dim < len(shape):
        return {"unknown": "tp"}  # it says that it is split, and not where
    whole = [length * size if d == dim else length for d, length in enumerate(shape)]
    gated = getattr(getattr(module, "config", None), "gated_linear_unit", False)
    halves = 2 if gated and dim == 0 and "linear_fc1" in name else 1
    each = shape[dim] // halves
    boxes = []
    for half in range(halves):
        offset = [0] * len(shape)
        offset[dim] = half * each * size + rank * each
        boxes.append([offset, [each if d == dim else length for d, length in enumerate(shape)]])
    return {"whole": whole, "boxes": boxes, "along": dim}


def promised_replicas(root: torch.nn.Module) -> set:
    """Returns the parameters (by id) that a wrapper for data parallelism keeps alike on all its ranks."""
    found: set = set()
    for module in root.modules():
        kind = type(module)
        torch_own = isinstance(module, torch.nn.parallel.DistributedDataParallel)
        others = kind.__name__ in ("DistributedDataParallel", "DeepSpeedEngine")
        if not torch_own and not (others and kind.__module__.startswith(("megatron.", "deepspeed."))):
            continue
        left_out = getattr(module, "parameters_to_ignore", ())
        for name, parameter in module.module.named_parameters():
            if name not in left_out and getattr(parameter, "allreduce", True):  # False: experts, which ranks may divide
                found.add(id(parameter))
    return found


def _tensor_size(state: Any, expert: bool) -> int:
    return state.get_expert_tensor_parallel_world_size() if expert else state.get_tensor_model_parallel_world_size()


def _tensor_rank(state: Any, expert: bool) -> int:
    return state.get_expert_tensor_parallel_rank() if expert else state.get_tensor_model_parallel_rank()


def elements_of(place: dict, tensor: torch.Tensor) -> int:
    """Returns the elements of the whole."""
    return math.prod(place.get("whole", tensor.shape))


def valid_range(parameter: torch.Tensor, optimizer: Any) -> Optional[list]:
    """Returns which elements of a gradient this rank keeps, where Megatron's optimizer is distributed."""
    distributed = False
    for one in getattr(optimizer, "chained_optimizers", [optimizer]):
        ranges = getattr(one, "model_param_gbuf_map", None)
        distributed = distributed or ranges is not None
        if ranges is not None and parameter in ranges:
            held = one._get_model_param_range_map(parameter)["param"]
            return [held.start, held.end]
    return [0, 0] if distributed else None

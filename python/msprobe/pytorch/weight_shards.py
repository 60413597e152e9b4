"""What this process holds of the weights of a model, and where that lies in the whole weights."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.", "module.module.")

# Classes of engines, by name: they are not imported here. Where tensor parallelism cuts their weights.
_CUT_OF_CLASS = {
    "RowParallelLinear": "columns",
    "ColumnParallelLinear": "rows",
    "VocabParallelEmbedding": "rows",
    "FusedMoE": "experts",
}
_COLUMN_WORDS = ("w2", "down_proj", "linear_fc2")  # of stacked experts: cut along the hidden size of the expert


@dataclass
class Shard:
    """A tensor of this process and its place in the whole weight.

    Attributes:
        name: Of the weight.
        tensor: What is here.
        whole: Shape of the whole weight, where it is cut as one; else empty.
        begin: Where the tensor lies in it.
        cut: Where tensor parallelism cuts each part of it: "", "rows", "columns", or "name" for where names say.
        numbers: shard, shards, kv_shard, kv_shards, first_expert, flat_begin, buffer.
        missing: Its values cannot be had without the other ranks.
    """

    name: str
    tensor: torch.Tensor
    whole: tuple = ()
    begin: tuple = ()
    cut: str = ""
    numbers: dict = field(default_factory=dict)
    missing: bool = False


class Ranks:
    """Where this process stands among those that share the weights, as far as the script says it.

    Attributes:
        tensor: (rank, size) of tensor parallelism, where the model does not say it; names then tell how weights are cut.
    """

    def __init__(self, tensor: Optional[tuple], expert: Optional[tuple], facts: dict) -> None:
        """Takes (rank, size) of tensor and expert parallelism, and what is known of the whole model."""
        self.tensor = tensor
        self._expert = expert
        self._experts = facts.get("experts", 0)
        self._groups = facts.get("groups", 0)

    def keys_and_values(self) -> dict:
        """Returns which shard of k and v is here: where there are fewer groups than ranks, ranks hold copies."""
        rank, size = self.tensor or (0, 1)
        shards = min(size, self._groups or size)
        return {"kv_shard": rank * shards // size, "kv_shards": shards}

    def first_expert(self, stacked: int = 0, rank_and_size: Optional[tuple] = None) -> int:
        """Returns the number of the first expert that is here; `stacked` are, if that many lie in one tensor."""
        rank, size = self._expert or rank_and_size or (0, 1)
        return rank * (stacked or self._experts // size) if size > 1 else 0


def shards_of(model: Any, ranks: Ranks) -> Iterator[Shard]:
    """Lists the parameters and persistent buffers of a model.

    Args:
        model: A module, a list of modules (chunks of a pipeline), or pairs of names and tensors.
        ranks: What the script says of this process.

    Yields:
        Each in the order of the model; no collective is called.
    """
    if is_module(model):
        for chunk in model if isinstance(model, (list, tuple)) else [model]:
            yield from _of_module(chunk, ranks)
        return
    pairs: Iterable = model.items() if hasattr(model, "items") else model
    for name, tensor in pairs:
        yield _with_parallel(_placed(Shard(plain_name(str(name)), tensor)), ranks)


def is_module(model: Any) -> bool:
    """Tells a model, or a list of its chunks, from pairs of names and tensors."""
    chunks = model if isinstance(model, (list, tuple)) else [model]
    return bool(chunks) and all(isinstance(chunk, torch.nn.Module) for chunk in chunks)


def plain_name(name: str) -> str:
    """Returns a name without what wrappers add to it."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def _of_module(model: torch.nn.Module, ranks: Ranks) -> Iterator[Shard]:
    layers = _layer_numbers(model)
    flat_names = _flat_names(model)
    for prefix, module in model.named_modules(remove_duplicate=False):
        base = f"{prefix}." if prefix else ""
        flat = _flat_parameter(module)
        if flat is not None:
            yield from _flat_shards(base, flat)
        transient = module._non_persistent_buffers_set
        for name, tensor in module._parameters.items():
            if tensor is None or name == "_flat_param" or (id(module), name) in flat_names:
                continue
            shard = _placed(Shard(layers.renamed(plain_name(base + name)), tensor))
            _cut_by_module(shard, module, name)
            _number_experts(shard, module, name, ranks)
            yield _with_parallel(shard, ranks)
        for name, tensor in module._buffers.items():
            if tensor is not None and name not in transient:
                shard = _placed(Shard(layers.renamed(plain_name(base + name)), tensor))
                shard.numbers["buffer"] = 1
                yield shard


class _LayerNumbers:
    """Megatron numbers the layers of each stage from 0; a layer knows its number in the model, counted from 1."""

    def __init__(self, numbers: dict) -> None:
        self._numbers = numbers

    def renamed(self, name: str) -> str:
        for prefix, number in self._numbers.items():
            if name.startswith(prefix):
                stem = prefix[:-1].rpartition(".")[0]
                return f"{stem}.{number}.{name[len(prefix) :]}"
        return name


def _layer_numbers(model: torch.nn.Module) -> _LayerNumbers:
    numbers = {}
    for name, module in model.named_modules():
        number = getattr(module, "layer_number", None)
        plain = plain_name(name)
        if isinstance(number, int) and plain.rpartition(".")[2].isdigit() and plain.split(".")[-2:-1] == ["layers"]:
            numbers[f"{plain}."] = number - 1
    return _LayerNumbers(numbers)


def _number_experts(shard: Shard, module: Any, name: str, ranks: Ranks) -> None:
    if _is_named(module, "FusedMoE"):
        shard.numbers["first_expert"] = _first_expert(module)
    elif getattr(module._parameters[name], "allreduce", True) is False:  # Megatron's mark for weights of experts
        shard.numbers["first_expert"] = ranks.first_expert(0, _of_megatron("expert_model_parallel"))


def _first_expert(module: Any) -> int:
    mapping = getattr(module, "expert_map", None)
    if isinstance(mapping, torch.Tensor):
        here = (mapping >= 0).nonzero().flatten().tolist()
        return int(here[0]) if here else 0
    local = getattr(module, "local_num_experts", 0) or getattr(module, "num_local_experts", 0) or 0
    return int(getattr(module, "ep_rank", 0) or getattr(module, "moe_ep_rank", 0) or 0) * int(local)


def _is_named(module: Any, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(module).__mro__)


def _placed(shard: Shard) -> Shard:
    """The part of a DTensor that is here."""
    tensor = shard.tensor.data if isinstance(shard.tensor, torch.nn.Parameter) else shard.tensor
    shard.tensor = tensor
    placements = getattr(tensor, "placements", None)
    if placements is None or not hasattr(tensor, "to_local"):
        return shard
    shard.whole = tuple(tensor.shape)
    if any(placement.is_partial() for placement in placements):
        shard.missing = True
    local_shape, shard.begin = _place_of(tensor)
    shard.tensor = tensor.to_local() if not hasattr(tensor, "_local_tensor") else tensor._local_tensor
    if tuple(shard.tensor.shape) != tuple(local_shape):
        shard.missing = True
    if shard.missing or shard.tensor.numel() == 0:
        shard.begin = ()
    return shard


def _place_of(tensor: Any) -> tuple:
    """Shape of what is here of a DTensor, and where it begins: as its library says, or as chunks of each mesh dimension."""
    for library in ("torch.distributed.tensor._utils", "torch.distributed._tensor._utils"):
        place = getattr(sys.modules.get(library), "compute_local_shape_and_global_offset", None)
        if place is not None:
            shape, begin = place(tensor.shape, tensor.device_mesh, tensor.placements)
            return tuple(shape), tuple(begin)
    shape, begin = list(tensor.shape), [0] * tensor.dim()
    coordinates = tensor.device_mesh.get_coordinate()
    for dimension, placement in enumerate(tensor.placements):
        if not placement.is_shard():
            continue
        dim, chunks = placement.dim, tensor.device_mesh.size(dimension)
        step = -(-shape[dim] // chunks)
        first = min(shape[dim], step * coordinates[dimension])
        begin[dim] += first
        shape[dim] = min(step, shape[dim] - first)
    return tuple(shape), tuple(begin)


# ---- FSDP of version 1: one flat parameter for a group of them


def _flat_parameter(module: Any) -> Any:
    handle = getattr(module, "_handle", None) if _is_named(module, "FullyShardedDataParallel") else None
    return getattr(handle, "flat_param", None)


def _flat_names(model: torch.nn.Module) -> set:
    """Parameters that are views into a flat one (use_orig_params), which is read instead."""
    names = set()
    for module in model.modules():
        flat = _flat_parameter(module)
        for info in getattr(flat, "_param_infos", ()):
            names.add((id(info.module), info.param_name))
        for info in getattr(flat, "_shared_param_infos", ()):
            names.add((id(info.module), info.param_name))
    return names


def _flat_shards(base: str, flat: Any) -> Iterator[Shard]:
    infos = flat._param_infos
    begin = 0
    sharded = getattr(flat, "_shard_param_infos", None)
    unsharded = flat.numel() >= sum(flat._numels)
    local = flat.data
    for index, (info, shape) in enumerate(zip(infos, flat._shapes)):
        count = flat._numels[index]
        inner = f"{info.module_name}." if info.module_name else ""
        shard = Shard(plain_name(f"{base}{inner}{info.param_name}"), local[:0], tuple(shape))
        shard.numbers["flat_begin"] = 0
        if unsharded or sharded is None:
            shard.tensor = local[begin : begin + count]
        elif sharded[index].in_shard:
            here = sharded[index]
            shard.tensor = local[here.offset_in_shard : here.offset_in_shard + here.numel_in_shard]
            shard.numbers["flat_begin"] = here.intra_param_start_idx
        begin += count
        yield shard


# ---- tensor parallelism


def _cut_by_module(shard: Shard, module: Any, name: str) -> None:
    """How an engine or Megatron cuts a weight, by what the layer and the weight say of themselves."""
    if shard.whole:
        return
    parameter = module._parameters[name]
    if getattr(parameter, "tensor_model_parallel", False) and hasattr(parameter, "partition_dim"):
        rank, size = _of_megatron("tensor_model_parallel")
        _cut(shard, "rows" if parameter.partition_dim == 0 else "columns", rank, size)
        return
    cut = next((c for k in type(module).__mro__ for n, c in _CUT_OF_CLASS.items() if k.__name__ == n), "")
    size = int(getattr(module, "tp_size", 1) or 1)
    if not cut or size <= 1:
        return
    if cut == "experts":
        cut = "columns" if name.startswith(_COLUMN_WORDS) else "rows"
    if cut == "columns" and parameter.dim() < 2:
        return
    rank = getattr(module, "tp_rank", None)
    _cut(shard, cut, _engine_rank() if rank is None else int(rank), size)
    copies = int(getattr(module, "num_kv_head_replicas", 1) or 1)
    shard.numbers["kv_shard"] = shard.numbers["shard"] // copies
    shard.numbers["kv_shards"] = max(1, size // copies)


def _cut(shard: Shard, cut: str, rank: int, size: int) -> None:
    if size > 1:
        shard.cut = cut
        shard.numbers.update(shard=rank, shards=size)


def _with_parallel(shard: Shard, ranks: Ranks) -> Shard:
    if ranks.tensor is not None and not shard.cut and not shard.whole:
        _cut(shard, "name", *ranks.tensor)
        shard.numbers.update(ranks.keys_and_values())
    if "expert" in shard.name and shard.tensor.dim() == 3 and not shard.whole:
        shard.numbers.setdefault("first_expert", ranks.first_expert(shard.tensor.shape[0]))
    return shard


def _of_megatron(group: str) -> tuple:
    """(rank, size) in one of Megatron's groups; (0, 1) without Megatron."""
    state: Any = sys.modules.get("megatron.core.parallel_state")
    if state is None:
        return 0, 1
    return getattr(state, f"get_{group}_rank")(), getattr(state, f"get_{group}_world_size")()


def _engine_rank() -> int:
    """The rank of tensor parallelism in an engine whose layers do not know it."""
    for library in ("vllm.distributed", "sglang.srt.distributed"):
        rank = getattr(sys.modules.get(library), "get_tensor_model_parallel_rank", None)
        if rank is not None:
            return int(rank())
    return 0

"""Fingerprints of the weights of a model: what PrecisionDebugger.fingerprint() does."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import torch

from .. import _core
from .weight_shards import Ranks, Shard, is_module, shards_of

Weights = Union[torch.nn.Module, Sequence[torch.nn.Module], Mapping[str, torch.Tensor], Iterable[tuple]]

_BLOCK_BYTES = 64 << 20  # of a device, copied at a time
_FACTS = {
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "groups": ("num_key_value_heads", "num_query_groups"),
    "head_dim": ("head_dim", "kv_channels", "d_kv"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "ffn": ("intermediate_size", "ffn_hidden_size", "n_inner"),
    "vocab": ("vocab_size",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "num_moe_experts"),
    "gated": ("gated_linear_unit",),
    "zero_centred": ("layernorm_zero_centered_gamma",),
    "tied": ("tie_word_embeddings",),
}


class WeightFingerprint:
    """A hash for each row of each weight of this process.

    Attributes:
        path: The file.
        text: What it holds.
    """

    def __init__(self, path: str, text: str) -> None:
        """Keeps what was written to `path`; an empty path for what was written nowhere."""
        self.path = path
        self.text = text

    def compare(self, other: "WeightFingerprint", history: Sequence["WeightFingerprint"] = ()) -> dict:
        """Compares two of this process, as `msprobe weights compare --json` does of all ranks.

        Args:
            other: The copy.
            history: Of earlier steps, the oldest first: which of them the copy is.

        Returns:
            The result, with `different`, `undecided`, `weights` and `judgement`.
        """
        earlier = [print_.text for print_ in history]
        return json.loads(_core.compare_fingerprints([self.text], [other.text], earlier))

    def __repr__(self) -> str:
        """Names the file."""
        return f"WeightFingerprint({self.path!r})"


def make_fingerprint(
    model: Weights,
    name: str,
    path: str,
    *,
    dtype: Any = None,
    config: Any = None,
    step: int = -1,
    ranks: tuple = (0, 1),
    tensor_parallel: Optional[tuple] = None,
    expert_parallel: Optional[tuple] = None,
) -> WeightFingerprint:
    """Reads the weights where they lie and writes their fingerprint.

    Args:
        model: A model, its chunks, or names and tensors.
        name: What moment this is, such as "before".
        path: The file; empty for none.
        dtype: Floating-point weights are rounded to it first; None for as they are.
        config: Of the model, which says how many heads there are, where `model` is not one.
        step: Of the training; -1 where it is not known.
        ranks: (rank, how many there are).
        tensor_parallel: (rank, size), where the model does not say it.
        expert_parallel: The same of experts.

    Returns:
        The fingerprint.
    """
    facts = _facts_of(model, config)
    shards = list(shards_of(model, Ranks(tensor_parallel, expert_parallel, facts)))
    numbers = {"step": step, "rank": ranks[0], "world": ranks[1]}
    maker = _core.FingerprintMaker(name, "model" if is_module(model) else "bucket", numbers, facts)
    wanted = None if dtype is None else getattr(torch, str(dtype).replace("torch.", ""))
    with torch.no_grad():
        for shard in shards:
            _add(maker, shard, wanted)
        known: dict = {}  # memory that two names have
        for index, shard in enumerate(shards):
            tensor = shard.tensor
            if shard.missing or tensor.device.type == "meta":
                maker.without(index)
                continue
            key = (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), shard.whole)
            other = known.setdefault(key, index) if tensor.numel() else index
            if other != index and shard.cut == shards[other].cut:
                maker.same(index, other)
            elif not _read(maker, index, shard, wanted):
                maker.without(index)
    return WeightFingerprint(path, maker.write(path))


def _add(maker: Any, shard: Shard, wanted: Optional[torch.dtype]) -> None:
    stored = shard.tensor.dtype
    kept = wanted if wanted is not None and stored.is_floating_point else stored
    before = str(stored) if kept != stored else ""
    whole, begin = list(shard.whole), list(shard.begin)
    maker.add(shard.name, str(kept), before, list(shard.tensor.shape), whole, begin, shard.cut, shard.numbers)


def _read(maker: Any, index: int, shard: Shard, wanted: Optional[torch.dtype]) -> bool:
    """Memory of the host as it lies; of devices, and in another type, some rows at a time."""
    tensor = shard.tensor
    rounds = wanted is not None and tensor.dtype.is_floating_point and tensor.dtype != wanted
    if tensor.device.type == "cpu" and not rounds:
        return maker.hash(index, tensor.data_ptr(), 0, list(tensor.shape), list(tensor.stride()))
    if tensor.dim() == 0 or tensor.numel() == 0:
        return _read_rows(maker, index, tensor, 0, wanted if rounds else tensor.dtype)
    row = max(1, tensor.numel() // tensor.shape[0] * tensor.element_size())
    rows = max(1, _BLOCK_BYTES // row)
    return all(
        _read_rows(maker, index, tensor[first : first + rows], first, wanted if rounds else tensor.dtype)
        for first in range(0, tensor.shape[0], rows)
    )


def _read_rows(maker: Any, index: int, rows: torch.Tensor, first: int, dtype: Optional[torch.dtype]) -> bool:
    here = rows.to(dtype=dtype).cpu()
    return maker.hash(index, here.data_ptr(), first, list(here.shape), list(here.stride()))


def _facts_of(model: Any, config: Any) -> dict:
    """Numbers of heads and experts that tell fused weights apart, from the configuration of the model."""
    chunks = model if isinstance(model, (list, tuple)) else [model]
    found: dict = {}
    _take_facts(config, found)
    for module in (m for chunk in chunks if isinstance(chunk, torch.nn.Module) for m in _first_modules(chunk)):
        _take_facts(getattr(module, "config", None), found)
        shared = getattr(module, "share_embeddings_and_output_weights", None)
        if isinstance(shared, bool):
            found.setdefault("tied", int(shared))
    return found


def _take_facts(config: Any, found: dict) -> None:
    for source in (config, getattr(config, "text_config", None)):
        for fact, names in _FACTS.items():
            value = next((getattr(source, n) for n in names if isinstance(getattr(source, n, None), (int, bool))), None)
            if value is not None and (value or isinstance(value, bool)):
                found.setdefault(fact, int(value))


def _first_modules(model: torch.nn.Module) -> list:
    """The model and what it wraps."""
    out = [model]
    for name in ("module", "_fsdp_wrapped_module", "_orig_mod", "model", "language_model"):
        inner = getattr(out[-1], name, None)
        if isinstance(inner, torch.nn.Module):
            out.append(inner)
    return out


def free_path(directory: str, rank: int, again: bool) -> str:
    """Returns the file of a rank: the same for a model, a new one for each bucket."""
    path = os.path.join(directory, f"rank{rank}.json")
    number = 1
    while again and os.path.exists(path):
        path = os.path.join(directory, f"rank{rank}_{number}.json")
        number += 1
    return path

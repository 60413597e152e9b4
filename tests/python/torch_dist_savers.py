"""Checkpoints as megatron-core's dist_checkpointing writes them, in each way of keeping the distributed optimizer."""

import warnings

import torch
from checkpoint_savers import FFN, GROUPS, HEAD, HEADS, HIDDEN, LAYERS, _rank
from foreign_arguments import with_objects
from megatron_savers import _arguments

KINDS = ("fully_reshardable", "fully_sharded_model_space", "dp_reshardable", "dp_zero_gather_scatter")
PADDED = 128


def moment(key, t):
    """The states that a weight has here: of its value, so that all layouts of a model have the same."""
    value = t.float()
    return {"param": value, "exp_avg": 0.1 * value, "exp_avg_sq": value * value}[key].clone()


def _stacked(model):
    """Layers of one kind as one tensor."""
    out = {}
    for name, t in model.items():
        if not name.startswith("decoder.layers."):
            out[name] = t
            continue
        layer, tail = name.removeprefix("decoder.layers.").split(".", 1)
        out.setdefault(f"decoder.layers.{tail}", [None] * LAYERS)[int(layer)] = t
    return {name: torch.stack(t) if isinstance(t, list) else t for name, t in out.items()}


def _by_shards(name, t, tp):
    """As releases before 0.15 kept states: the numbers of the shard, then its elements."""
    lead = t.shape[:1] if name.startswith("decoder.layers.") else ()
    body = t.shape[len(lead) :]
    cuts = [1] * len(body)
    if "fc1.weight" in name:
        cuts[0] = 2 * tp
    elif "qkv.weight" in name or "embeddings" in name or "output_layer" in name:
        cuts[0] = tp
    elif "proj.weight" in name or "fc2.weight" in name:
        cuts[1] = tp
    split = [n for cut, size in zip(cuts, body) for n in (cut, size // cut)]
    at = len(lead)
    order = [*range(at), *range(at, at + 2 * len(body), 2), *range(at + 1, at + 2 * len(body), 2)]
    return t.reshape(*lead, *split).permute(order).reshape(*lead, *cuts, -1).contiguous()


def _buffers(model, bucket):
    """Flat states of a rank's chunk, and where its buckets end: weights last first, from multiples of 64 elements on."""
    flat, ends, at, begin = {"param": [], "exp_avg": [], "exp_avg_sq": []}, [], 0, 0
    for t in reversed(model.values()):
        if at - begin >= bucket:
            ends.append(at)
            begin = at
        gap = -(at - begin) % 64
        for key in flat:
            flat[key] += [torch.full((gap,), 9.0), moment(key, t).reshape(-1)]
        at += gap + t.numel()
    return {key: torch.cat(parts) for key, parts in flat.items()}, [*ends, at]


def rank_models(state, tp, pp, vpp):
    """By the number of the model parallel rank, its chunks."""
    each = LAYERS // (pp * vpp)
    for p in range(pp):
        for t in range(tp):
            chunks = []
            for v in range(vpp):
                first = (v * pp + p) * each
                layers = range(first, first + each)
                chunks.append(_rank(state, layers, first == 0, first + each == LAYERS, tp, t, PADDED))
            yield p * tp + t, chunks


def save_torch_dist(state, directory, kind, tp=2, pp=2, vpp=1, bucket=3000, change=lambda saved: None):
    """One iteration; `change` is called with what is saved."""
    import torch.distributed.checkpoint as checkpoint

    model = _stacked(_rank(state, range(LAYERS), True, True, 1, 0, PADDED))
    saved = dict(model)
    for name, t in model.items():
        for key in ("param", "exp_avg", "exp_avg_sq"):
            if kind == "fully_reshardable":
                saved[f"optimizer.state.{key}.{name}"] = moment(key, t)
            elif kind == "fully_sharded_model_space":
                own = "fp32_param" if key == "param" else key
                saved[f"optimizer.state.{own}.{name}"] = _by_shards(name, moment(key, t), tp)
    for group, chunks in rank_models(state, tp, pp, vpp):
        at = f"optimizer.distributed.dp_group_idx_{group}"
        if kind == "dp_reshardable":
            for number, chunk in enumerate(chunks):
                flat, ends = _buffers(chunk, bucket)
                for i, (first, last) in enumerate(zip([0, *ends], ends)):
                    for key, t in flat.items():
                        name = f"gbuf_idx_{number}.dtype_(torch.float32, torch.float32).bucket_idx_{i}"
                        saved[f"{at}.{name}.{key}"] = t[first:last].clone()
        elif kind == "dp_zero_gather_scatter":
            own = {"buckets_coalesced": True}
            for number, chunk in enumerate(chunks):
                flat, ends = _buffers(chunk, bucket)
                own[number] = {(torch.float32, torch.float32): {**flat, "numel_unpadded": ends[-1]}}
            saved[f"{at}.param_state/shard_0_1"] = own
    saved["rng_state/shard_0_1"] = [{"cpu": torch.get_rng_state()}]
    change(saved)
    directory = directory / "iter_0000010"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planner = checkpoint.DefaultSavePlanner(flatten_state_dict=False)
        checkpoint.save(saved, checkpoint_id=str(directory), planner=planner)
    args = _arguments(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp)
    assert (args.kv_channels, args.hidden_size, args.ffn_hidden_size) == (HEAD, HIDDEN, FFN)
    assert (args.num_attention_heads, args.num_query_groups) == (HEADS, GROUPS)
    torch.save({"args": with_objects(args), "iteration": 10, "checkpoint_version": 3.0}, directory / "common.pt")
    (directory.parent / "latest_checkpointed_iteration.txt").write_text("10")

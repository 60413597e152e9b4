"""One LLaMA in the layouts in which frameworks save it, from a state dict of Hugging Face's names."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

HEADS, GROUPS, HEAD, HIDDEN, FFN, LAYERS, VOCAB = 4, 2, 8, 32, 48, 4, 96
CONFIG = {
    "model_type": "llama",
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "head_dim": HEAD,
    "hidden_size": HIDDEN,
    "intermediate_size": FFN,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB,
    "tie_word_embeddings": False,
}


def llama(seed=0, dtype=torch.float32):
    """The weights of a small LLaMA, under Hugging Face's names."""
    rng = torch.Generator().manual_seed(seed)

    def random(*shape):
        return (torch.randn(*shape, generator=rng) * 0.02).to(dtype)

    state = {"model.embed_tokens.weight": random(VOCAB, HIDDEN)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        state[at + "input_layernorm.weight"] = 1 + random(HIDDEN)
        state[at + "self_attn.q_proj.weight"] = random(HEADS * HEAD, HIDDEN)
        state[at + "self_attn.k_proj.weight"] = random(GROUPS * HEAD, HIDDEN)
        state[at + "self_attn.v_proj.weight"] = random(GROUPS * HEAD, HIDDEN)
        state[at + "self_attn.o_proj.weight"] = random(HIDDEN, HEADS * HEAD)
        state[at + "post_attention_layernorm.weight"] = 1 + random(HIDDEN)
        state[at + "mlp.gate_proj.weight"] = random(FFN, HIDDEN)
        state[at + "mlp.up_proj.weight"] = random(FFN, HIDDEN)
        state[at + "mlp.down_proj.weight"] = random(HIDDEN, FFN)
    state["model.norm.weight"] = 1 + random(HIDDEN)
    state["lm_head.weight"] = random(VOCAB, HIDDEN)
    return state


def _index(directory, files, ending):
    index = {"metadata": {}, "weight_map": {name: file for file, part in files.items() for name in part}}
    (directory / f"{ending}.index.json").write_text(json.dumps(index))
    (directory / "config.json").write_text(json.dumps(CONFIG))


def _shards(state, stem, ending):
    names = list(state)
    half = len(names) // 2
    return {
        f"{stem}-0000{i + 1}-of-00002.{ending}": {n: state[n] for n in part}
        for i, part in enumerate((names[:half], names[half:]))
    }


def save_safetensors(state, directory):
    """Two shards and their index."""
    from safetensors.torch import save_file

    directory.mkdir()
    files = _shards(state, "model", "safetensors")
    for file, part in files.items():
        save_file({name: t.contiguous() for name, t in part.items()}, directory / file)
    _index(directory, files, "model.safetensors")


def save_bin(state, directory):
    """Two shards of torch.save() and their index."""
    directory.mkdir()
    files = _shards(state, "pytorch_model", "bin")
    for file, part in files.items():
        torch.save(part, directory / file)
    _index(directory, files, "pytorch_model.bin")


def save_distributed(state, directory):
    """torch.distributed.checkpoint, of one process."""
    import torch.distributed.checkpoint as checkpoint

    checkpoint.save(dict(state), checkpoint_id=str(directory))


def save_npz(state, path):
    """One archive of arrays."""
    np.savez(path, **{name: t.float().numpy() for name, t in state.items()})


def save_mindspore(state, path):
    """The messages of protobuf that MindSpore writes, under MindFormers' names."""

    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def field(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data

    out = b""
    for name, t in state.items():
        dims = b"".join(varint(1 << 3) + varint(n) for n in t.shape)
        tensor = dims + field(2, b"Float32") + field(3, t.float().numpy().tobytes())
        out += field(1, field(1, mindformers_name(name).encode()) + field(2, tensor))
    path.write_bytes(out)


def mindformers_name(name):
    """What MindFormers calls a weight of LLaMA."""
    for old, new in (
        ("embed_tokens.weight", "tok_embeddings.embedding_weight"),
        ("self_attn.q_proj", "attention.wq"),
        ("self_attn.k_proj", "attention.wk"),
        ("self_attn.v_proj", "attention.wv"),
        ("self_attn.o_proj", "attention.wo"),
        ("mlp.gate_proj", "feed_forward.w1"),
        ("mlp.down_proj", "feed_forward.w2"),
        ("mlp.up_proj", "feed_forward.w3"),
        ("input_layernorm", "attention_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("model.norm.", "model.norm_out."),
    ):
        name = name.replace(old, new)
    return name


def _rank(state, layers, first, last, tp, rank, padded):
    """The model of one rank of Megatron: a stage of the pipeline, a slice of its tensors."""

    def rows(t):
        return t.chunk(tp, 0)[rank].clone()

    def columns(t):
        return t.chunk(tp, 1)[rank].clone()

    def pad(t):
        return torch.cat([t, torch.zeros(padded - len(t), HIDDEN, dtype=t.dtype)])

    out = {}
    if first:
        out["embedding.word_embeddings.weight"] = rows(pad(state["model.embed_tokens.weight"]))
    for local, i in enumerate(layers):
        of, to = f"model.layers.{i}.", f"decoder.layers.{local}."
        q, k, v = (state[of + f"self_attn.{x}_proj.weight"].view(GROUPS, -1, HIDDEN) for x in "qkv")
        out[to + "self_attention.linear_qkv.layer_norm_weight"] = state[of + "input_layernorm.weight"]
        out[to + "self_attention.linear_qkv.weight"] = rows(torch.cat([q, k, v], 1).reshape(-1, HIDDEN))
        out[to + "self_attention.linear_proj.weight"] = columns(state[of + "self_attn.o_proj.weight"])
        out[to + "mlp.linear_fc1.layer_norm_weight"] = state[of + "post_attention_layernorm.weight"]
        gate, up = (rows(state[of + f"mlp.{x}_proj.weight"]) for x in ("gate", "up"))
        out[to + "mlp.linear_fc1.weight"] = torch.cat([gate, up])
        out[to + "mlp.linear_fc2.weight"] = columns(state[of + "mlp.down_proj.weight"])
    if last:
        out["decoder.final_layernorm.weight"] = state["model.norm.weight"]
        out["output_layer.weight"] = rows(pad(state["lm_head.weight"]))
    return out


def save_megatron(state, directory, tp=2, pp=2, vpp=1, padded=128):
    """A directory of an iteration, a file for each rank, with a vocabulary padded for the ranks."""
    args = argparse.Namespace(
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        expert_model_parallel_size=1,
        num_experts=None,
        num_attention_heads=HEADS,
        num_query_groups=GROUPS,
        group_query_attention=True,
        kv_channels=HEAD,
        hidden_size=HIDDEN,
        ffn_hidden_size=FFN,
        swiglu=True,
        untie_embeddings_and_output_weights=True,
    )
    each = LAYERS // (pp * vpp)
    for t in range(tp):
        for p in range(pp):
            saved = {"args": args, "checkpoint_version": 3.0, "iteration": 5}
            for v in range(vpp):
                begin = (v * pp + p) * each
                model = _rank(
                    state,
                    range(begin, begin + each),
                    p == 0 and v == 0,
                    p == pp - 1 and v == vpp - 1,
                    tp,
                    t,
                    padded,
                )
                saved["model" if vpp == 1 else f"model{v}"] = model
            rank = directory / "iter_0000005" / (f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else ""))
            rank.mkdir(parents=True)
            torch.save(saved, rank / "model_optim_rng.pt")
    (directory / "latest_checkpointed_iteration.txt").write_text("5")


def save_zero(state, directory, stage, ranks=2):
    """DeepSpeed: 16-bit weights, and the fp32 partitions that training goes on with."""
    directory.mkdir()
    shapes = {name: t.shape for name, t in state.items()}
    module = {name: (t if stage < 3 else torch.empty(0)).bfloat16() for name, t in state.items()}
    for r in range(ranks):
        model = {"module": module, "param_shapes": [shapes], "ds_version": "0.16"}
        name = "mp_rank_00" if stage < 3 else f"zero_pp_rank_{r}_mp_rank_00"
        torch.save(model, directory / f"{name}_model_states.pt")
    flat = torch.cat([t.float().reshape(-1) for t in state.values()])
    for r in range(ranks):
        if stage < 3:
            padded = torch.cat([flat, torch.zeros(-len(flat) % (2 * ranks))])
            held = {"single_partition_of_fp32_groups": [padded.chunk(ranks)[r].clone()]}
        else:
            pieces = []
            for t in state.values():
                share = -(-t.numel() // ranks)
                pieces.append(
                    torch.cat([t.float().reshape(-1), torch.zeros(share * ranks - t.numel())]).chunk(ranks)[r]
                )
            held = {"fp32_flat_groups": [torch.cat(pieces)]}
        held["zero_stage"] = stage
        torch.save({"optimizer_state_dict": held}, directory / f"zero_pp_rank_{r}_mp_rank_00_optim_states.pt")


def save_all(state, root):
    """Every layout below `root`, by its name."""
    root = Path(root)
    save_safetensors(state, root / "safetensors")
    save_bin(state, root / "bin")
    save_distributed(state, root / "dcp")
    save_npz(state, root / "weights.npz")
    save_mindspore(state, root / "mindspore.ckpt")
    save_megatron(state, root / "megatron_tp2pp2")
    save_megatron(state, root / "megatron_vpp", tp=1, vpp=2)
    save_zero(state, root / "zero2", 2)
    save_zero(state, root / "zero3", 3)
    return sorted(p for p in root.iterdir())

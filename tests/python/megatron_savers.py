"""Checkpoints of Megatron beyond one LLaMA in bf16: experts on ranks of their own, older names, centred norms."""

import argparse

import torch
from checkpoint_savers import FFN, GROUPS, HEAD, HEADS, HIDDEN, LAYERS, llama

EXPERTS = 4


def mixture(seed=0):
    """The LLaMA of checkpoint_savers with experts in place of its feed-forward network, under published names."""
    rng = torch.Generator().manual_seed(seed + 1)
    out = {}
    for name, t in llama(seed).items():
        if ".mlp." not in name:
            out[name] = t
            continue
        if ".gate_proj." in name:
            out[name.replace("gate_proj", "gate")] = torch.randn(EXPERTS, HIDDEN, generator=rng) * 0.02
        for e in range(EXPERTS):
            out[name.replace("mlp.", f"mlp.experts.{e}.")] = torch.randn(t.shape, generator=rng) * 0.02
    return out


def _arguments(**more):
    return argparse.Namespace(
        num_layers=LAYERS,
        num_attention_heads=HEADS,
        num_query_groups=GROUPS,
        group_query_attention=True,
        kv_channels=HEAD,
        hidden_size=HIDDEN,
        ffn_hidden_size=FFN,
        swiglu=True,
        vocab_size=96,
        untie_embeddings_and_output_weights=True,
        **more,
    )


def _fused(state, at):
    parts = (state[f"{at}self_attn.{x}_proj.weight"].view(GROUPS, -1, HIDDEN) for x in "qkv")
    return torch.cat([*parts], 1).reshape(-1, HIDDEN)


def save_experts(state, directory, tp=2, pp=1, ep=2):
    """mp_rank_TT[_PPP][_EEE]: each rank of expert parallelism has its experts and copies of all else."""
    args = _arguments(
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        expert_model_parallel_size=ep,
        num_experts=EXPERTS,
    )
    each = LAYERS // pp
    for t in range(tp):
        for p in range(pp):
            for e in range(ep):
                model = {}
                if p == 0:
                    model["embedding.word_embeddings.weight"] = state["model.embed_tokens.weight"].chunk(tp)[t].clone()
                for local in range(each):
                    at, to = f"model.layers.{p * each + local}.", f"decoder.layers.{local}."
                    model[to + "input_layernorm.weight"] = state[at + "input_layernorm.weight"]
                    model[to + "self_attention.linear_qkv.weight"] = _fused(state, at).chunk(tp)[t].clone()
                    proj = state[at + "self_attn.o_proj.weight"]
                    model[to + "self_attention.linear_proj.weight"] = proj.chunk(tp, 1)[t].clone()
                    model[to + "pre_mlp_layernorm.weight"] = state[at + "post_attention_layernorm.weight"]
                    model[to + "mlp.router.weight"] = state[at + "mlp.gate.weight"]
                    for own in range(EXPERTS // ep):
                        of = f"{at}mlp.experts.{e * (EXPERTS // ep) + own}."
                        gate, up = (state[f"{of}{x}_proj.weight"].chunk(tp)[t] for x in ("gate", "up"))
                        expert = f"{to}mlp.experts.local_experts.{own}."
                        model[expert + "linear_fc1.weight"] = torch.cat([gate, up])
                        model[expert + "linear_fc2.weight"] = state[of + "down_proj.weight"].chunk(tp, 1)[t].clone()
                if p == pp - 1:
                    model["decoder.final_layernorm.weight"] = state["model.norm.weight"]
                    model["output_layer.weight"] = state["lm_head.weight"].chunk(tp)[t].clone()
                name = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else "") + (f"_{e:03d}" if ep > 1 else "")
                rank = directory / "iter_0000010" / name
                rank.mkdir(parents=True)
                torch.save({"args": args, "model": model, "iteration": 10}, rank / "model_optim_rng.pt")
    (directory / "latest_checkpointed_iteration.txt").write_text("10")


def save_older_names(state, directory):
    """As Megatron and MindSpeed named the weights before mcore, in nested dicts."""
    layers, at = {}, "model.layers."
    for i in range(LAYERS):
        of = f"{at}{i}."
        layers[f"layers.{i}.input_norm.weight"] = state[of + "input_layernorm.weight"]
        layers[f"layers.{i}.self_attention.query_key_value.weight"] = _fused(state, of)
        layers[f"layers.{i}.self_attention.dense.weight"] = state[of + "self_attn.o_proj.weight"]
        layers[f"layers.{i}.post_attention_norm.weight"] = state[of + "post_attention_layernorm.weight"]
        gate_up = [state[f"{of}mlp.{x}_proj.weight"] for x in ("gate", "up")]
        layers[f"layers.{i}.mlp.dense_h_to_4h.weight"] = torch.cat(gate_up)
        layers[f"layers.{i}.mlp.dense_4h_to_h.weight"] = state[of + "mlp.down_proj.weight"]
    layers["final_norm.weight"] = state["model.norm.weight"]
    model = {
        "language_model": {
            "embedding": {"word_embeddings": {"weight": state["model.embed_tokens.weight"]}},
            "encoder": layers,
            "output_layer": {"weight": state["lm_head.weight"]},
        }
    }
    rank = directory / "release" / "mp_rank_00"
    rank.mkdir(parents=True)
    args = _arguments(tensor_model_parallel_size=1, pipeline_model_parallel_size=1)
    torch.save({"args": args, "model": model}, rank / "model_optim_rng.pt")
    (directory / "latest_checkpointed_iteration.txt").write_text("release")


def save_centred_norms(state, directory):
    """--apply-layernorm-1p keeps the scales of norms less one."""
    from checkpoint_savers import save_megatron

    save_megatron({n: t - 1 if "norm" in n else t for n, t in state.items()}, directory, tp=2, pp=1)
    for file in directory.glob("iter_*/*/model_optim_rng.pt"):
        saved = torch.load(file, weights_only=False)
        saved["args"].apply_layernorm_1p = True
        torch.save(saved, file)


def save_distributed_optimizer(directory, bucket=None, experts_apart=True):
    """Beside each rank of a checkpoint: fp32 weights and moments, as Megatron gathers them in one long tensor.

    Weights lie last first, each from a multiple of 64 elements of its bucket on; a bucket ends with the weight that
    reaches `bucket` elements. The weights in the files become bf16. Without expert parallelism, experts lie among the others.
    """
    for file in sorted(directory.glob("iter_*/*/model_optim_rng.pt")):
        saved = torch.load(file, weights_only=False)
        states = []
        for experts in (False, True) if experts_apart else (None,):
            for key in [k for k in saved if k.startswith("model")]:
                names = [n for n in saved[key] if experts is None or (".experts." in n) == experts]
                flat, begin, at, pieces = {"param": [], "exp_avg": [], "exp_avg_sq": []}, 0, 0, []
                for name in reversed(names):
                    weight = saved[key][name]
                    if bucket and at - begin >= bucket:
                        begin = at
                    gap = -(at - begin) % 64
                    pieces.append((name, at + gap, weight))
                    at += gap + weight.numel()
                if not names:
                    continue
                for kind in flat:
                    flat[kind] = torch.full((at,), 9.0)
                    for _name, start, weight in pieces:
                        # Of the value itself, so that every layout of one model has the same moments.
                        value = weight.float().reshape(-1)
                        value = {"param": value, "exp_avg": 0.1 * value, "exp_avg_sq": value * value}[kind]
                        flat[kind][start : start + value.numel()] = value
                states.append(
                    {0: {(torch.bfloat16, torch.float32): {**flat, "numel_unpadded": at}}, "buckets_coalesced": True}
                )
        for key in [k for k in saved if k.startswith("model")]:
            saved[key] = {n: t.bfloat16() for n, t in saved[key].items()}
        torch.save(saved, file)
        of_experts = any(".experts." in n for n in saved["model"]) if "model" in saved else False
        if of_experts and len(states) == 2 and not file.parent.name.endswith("_000"):
            states[0] = None  # another rank of expert parallelism has the copy that is saved
        torch.save(states[0] if len(states) == 1 else states, file.with_name("distrib_optim.pt"))

"""Weights of a trainer as an engine holds them: fused, cut over ranks, experts stacked, the vocabulary padded."""

import torch
import transformers

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "vocab_size": 100,
}


def trainer(kind="dense", dtype=torch.bfloat16):
    torch.manual_seed(0)
    made = {
        "dense": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)),
        "bias": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES)),
        "tied": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)),
        "experts": lambda: transformers.MixtralForCausalLM(
            transformers.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2)
        ),
    }
    model = made[kind]()
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases that tell each other apart
            parameter.add_(torch.rand_like(parameter) * 0.1)
    return model.to(dtype)


def _part(tensor, dim, rank, size):
    return tensor.chunk(size, dim)[rank].contiguous()


def engine_state(state, rank=0, size=1, padded=0, experts=(0, 1)):
    """What rank `rank` of `size` holds, as vLLM lays it out; `experts`: (rank, size) of expert parallelism."""
    out = {}
    copies = max(1, size // SIZES["num_key_value_heads"])
    for name, t in state.items():
        words = name.split(".")
        if any(word in words for word in ("k_proj", "v_proj", "up_proj")):
            continue
        if "q_proj" in words:
            parts = [_part(t, 0, rank, size)]
            for other in ("k_proj", "v_proj"):
                whole = state[name.replace("q_proj", other)]
                parts.append(_part(whole, 0, rank // copies, size // copies))
            out[name.replace("q_proj", "qkv_proj")] = torch.cat(parts)
        elif "gate_proj" in words:
            up = state[name.replace("gate_proj", "up_proj")]
            out[name.replace("gate_proj", "gate_up_proj")] = torch.cat([_part(x, 0, rank, size) for x in (t, up)])
        elif name.endswith("experts.gate_up_proj"):
            gate, up = _part(t, 0, *experts).chunk(2, 1)
            out[name.replace("gate_up_proj", "w13_weight")] = torch.cat(
                [_part(x, 1, rank, size) for x in (gate, up)], 1
            )
        elif name.endswith("experts.down_proj"):
            out[name.replace("down_proj", "w2_weight")] = _part(_part(t, 0, *experts), 2, rank, size)
        elif "o_proj" in words or "down_proj" in words:
            out[name] = _part(t, 1, rank, size)
        elif words[-2] in ("embed_tokens", "lm_head"):
            rows = torch.cat([t, torch.randn(padded - len(t), t.shape[1]).to(t.dtype)]) if padded else t
            out[name] = _part(rows, 0, rank, size)
        else:
            out[name] = t
    return out

"""A small transformer as Megatron names its modules, and the same as an inference engine does: python train_infer_scenario.py
train|infer OUT. Both have the same weights and read the same tokens."""

import json
import sys
from pathlib import Path

import torch
from torch import nn

HIDDEN, HEADS, TOKENS = 16, 2, 6


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def linear_class(name):
    return type(name, (nn.Linear,), {})


ColumnParallelLinear, RowParallelLinear = linear_class("ColumnParallelLinear"), linear_class("RowParallelLinear")
QKVParallelLinear, MergedColumnParallelLinear = (
    linear_class("QKVParallelLinear"),
    linear_class("MergedColumnParallelLinear"),
)
VocabParallelEmbedding = type("VocabParallelEmbedding", (nn.Embedding,), {})


class DotProductAttention(nn.Module):
    def forward(self, qkv):
        q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(-2, -3) for x in qkv.chunk(3, -1))
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(-2, -3).flatten(-2)


class SwiGlu(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up


def module(name, forward, **children):
    """A module of a class called `name` whose forward is forward(self, x)."""
    made = type(name, (nn.Module,), {"forward": forward})()
    for key, child in children.items():
        setattr(made, key, child)
    return made


def attention(train):
    qkv = (ColumnParallelLinear if train else QKVParallelLinear)(HIDDEN, 3 * HIDDEN, bias=False)
    out = RowParallelLinear(HIDDEN, HIDDEN, bias=False)
    if train:
        parts = {"core_attention": DotProductAttention(), "linear_proj": out, "linear_qkv": qkv}
        return module("SelfAttention", lambda s, x: s.linear_proj(s.core_attention(s.linear_qkv(x))), **parts)
    parts = {"attn": DotProductAttention(), "o_proj": out, "qkv_proj": qkv}
    return module("Qwen3Attention", lambda s, x: s.o_proj(s.attn(s.qkv_proj(x))), **parts)


def mlp(train):
    up = (ColumnParallelLinear if train else MergedColumnParallelLinear)(HIDDEN, 4 * HIDDEN, bias=False)
    down = RowParallelLinear(2 * HIDDEN, HIDDEN, bias=False)
    if train:
        parts = {"linear_fc1": up, "activation": SwiGlu(), "linear_fc2": down}
        return module("MLP", lambda s, x: s.linear_fc2(s.activation(s.linear_fc1(x))), **parts)
    parts = {"gate_up_proj": up, "act_fn": SwiGlu(), "down_proj": down}
    return module("Qwen3MLP", lambda s, x: s.down_proj(s.act_fn(s.gate_up_proj(x))), **parts)


def layer(train):
    parts = {"input_layernorm": RMSNorm(), "mlp": mlp(train)}
    if train:
        parts.update(self_attention=attention(True), pre_mlp_layernorm=RMSNorm())

        def forward(s, x):
            x = x + s.self_attention(s.input_layernorm(x))
            return x + s.mlp(s.pre_mlp_layernorm(x))

        return module("TransformerLayer", forward, **parts)
    parts.update(self_attn=attention(False), post_attention_layernorm=RMSNorm())

    def forward(s, x):
        x = x + s.self_attn(s.input_layernorm(x))
        return x + s.mlp(s.post_attention_layernorm(x))

    return module("Qwen3DecoderLayer", forward, **parts)


def blocks(s, x):
    for one in s.layers:
        x = one(x)
    return s.final_layernorm(x) if hasattr(s, "final_layernorm") else s.norm(x)


def build(train):
    layers = nn.ModuleList(layer(train) for _ in range(2))
    tokens = VocabParallelEmbedding(32, HIDDEN)
    if train:
        embedding = module("LanguageModelEmbedding", lambda s, x: s.word_embeddings(x), word_embeddings=tokens)
        decoder = module("TransformerBlock", blocks, layers=layers, final_layernorm=RMSNorm())
        model = module("GPTModel", lambda s, x: s.decoder(s.embedding(x)), embedding=embedding, decoder=decoder)
        for name in ("Float16Module", "DistributedDataParallel"):
            model = module(name, lambda s, x: s.module(x), module=model)
        return model
    model = module(
        "Qwen3Model", lambda s, x: blocks(s, s.embed_tokens(x)), embed_tokens=tokens, layers=layers, norm=RMSNorm()
    )
    return module("Qwen3ForCausalLM", lambda s, x: s.model(x), model=model)


def main():
    train, out = sys.argv[1] == "train", Path(sys.argv[2])
    from msprobe.pytorch import PrecisionDebugger

    out.mkdir(parents=True)
    config = {"task": "tensor", "level": "L0", "dump_path": str(out), "rank": [], "step": []}
    config["tensor"] = {"scope": [], "list": [], "data_mode": ["all"]}
    (out / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    model = build(train)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        by_size = {}  # equal shapes appear in the same order on both sides
        for parameter in model.parameters():
            values = torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(len(by_size.setdefault(parameter.shape, [])))
            )
            by_size[parameter.shape].append(parameter)
            parameter.copy_(1 + values / 100 if parameter.dim() == 1 else values / 4)
    tokens = torch.randint(0, 32, (1, TOKENS), generator=generator)
    debugger = PrecisionDebugger(config_path=str(out / "config.json"))
    debugger.start(model)
    if train:
        model(tokens).square().mean().backward()
    else:
        with torch.no_grad():
            model(tokens[0])
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()

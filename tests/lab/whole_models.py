"""Small models whose results are compared with those of the same model in another batch, chunk or padding.

usage: whole_models.py DIRECTORY [NAME ...]      records each run, tensors and all, into DIRECTORY/NAME/CHANGE

A run without a change is recorded as "whole"; the others are what really differs from it, row 0 by itself, the first half of the batch, the
first half of the sequence, and eight positions behind it.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

PAD = 8
CHANGES = ("row alone", "half batch", "chunked", "padded")


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.norm, self.second = (
            nn.Linear(width, 2 * width),
            nn.LayerNorm(2 * width),
            nn.Linear(2 * width, 10),
        )

    def forward(self, x):
        return self.second(self.norm(functional.gelu(self.first(x))))


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.last = nn.GroupNorm(4, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        return self.last(functional.silu(self.norm(self.second(x))).mean((2, 3)))


class Encoder(nn.Module):
    """Attention written by hand, with a mask that hides what is padded."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.heads, self.table = heads, nn.Embedding(100, width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, ids, mask):
        x = self.table(ids)
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5 + mask[:, None, None]
        mixed = torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).flatten(2)
        return self.mlp(self.norm(x + self.o(mixed)))


def hf(kind, **settings):
    import transformers

    usual = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    usual |= {
        "intermediate_size": 64,
        "max_position_embeddings": 128,
        "attn_implementation": "sdpa",
        "use_cache": False,
    }
    if kind == "GPT2":
        usual = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "use_cache": False}
    config = getattr(transformers, kind + "Config")(**{**usual, **settings})
    name = {"GPT2": "GPT2LMHeadModel", "OPT": "OPTForCausalLM"}.get(kind, kind + "ForCausalLM")
    return getattr(transformers, name)(config).eval()


def tokens(batch, length):
    return (torch.randint(1, 100, (batch, length), generator=torch.Generator().manual_seed(1)),)


def masked(batch, length):
    return (*tokens(batch, length), torch.zeros(batch, length))


def values(*sizes, dtype=torch.float32):
    return lambda: (torch.randn(sizes, generator=torch.Generator().manual_seed(1)).to(dtype),)


# name: (model, its inputs, how many of the changes it knows)
MODELS = {
    "mlp": (lambda: Mlp(64), values(8, 64), 2),
    "mlp, six rows": (lambda: Mlp(96), values(6, 96), 2),
    "mlp bf16": (lambda: Mlp(64).bfloat16(), values(8, 64, dtype=torch.bfloat16), 2),
    "pictures": (Pictures, values(6, 3, 16, 16), 2),
    "encoder": (lambda: Encoder(32), lambda: masked(4, 12), 4),
    "encoder, short": (lambda: Encoder(32), lambda: masked(6, 5), 4),
    "llama": (lambda: hf("Llama", num_key_value_heads=2), lambda: tokens(4, 24), 4),
    "llama bf16": (lambda: hf("Llama").bfloat16(), lambda: tokens(4, 24), 4),
    "llama, two positions": (lambda: hf("Llama"), lambda: tokens(5, 2), 4),
    "llama eager": (lambda: hf("Llama", attn_implementation="eager"), lambda: tokens(4, 20), 4),
    "qwen2": (lambda: hf("Qwen2", num_key_value_heads=2), lambda: tokens(4, 18), 4),
    "gpt2": (lambda: hf("GPT2"), lambda: tokens(4, 22), 4),
    "opt": (lambda: hf("OPT", ffn_dim=64, word_embed_proj_dim=32), lambda: tokens(4, 14), 4),
    "gpt_neox": (lambda: hf("GPTNeoX"), lambda: tokens(3, 26), 4),
}


def changed(inputs, change):
    """The inputs of the changed run; padding is the token 0, and hidden by a mask where there is one."""
    if change == "row alone":
        return tuple(x[:1] for x in inputs)
    if change == "half batch":
        return tuple(x[: len(x) // 2] for x in inputs)
    if change == "chunked":
        return tuple(x[:, : x.shape[1] // 2] for x in inputs)
    pads = [torch.full((len(x), PAD), 0 if at == 0 else -1e30, dtype=x.dtype) for at, x in enumerate(inputs)]
    return tuple(torch.cat([x, pad], 1) for x, pad in zip(inputs, pads))


def main():
    from msprobe.pytorch import PrecisionDebugger

    root, names = Path(sys.argv[1]), sys.argv[2:] or list(MODELS)
    for name in names:
        build, make, known = MODELS[name]
        torch.manual_seed(0)
        model, inputs = build().eval(), make()
        for change in ("whole", *CHANGES[:known]):
            if name.startswith("encoder") and change == "chunked":
                continue  # every position looks at all others
            folder = root / name / change
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(
                json.dumps(
                    {"task": "tensor", "level": "L1", "dump_path": str(folder), "rank": [], "step": [], "tensor": {}}
                )
            )
            debugger = PrecisionDebugger(config_path=str(folder / "config.json"))
            with torch.no_grad():
                debugger.start()
                model(*(inputs if change == "whole" else changed(inputs, change)))
                debugger.stop()
            debugger.step()
            debugger._instance = None
            PrecisionDebugger._instance = None


if __name__ == "__main__":
    main()

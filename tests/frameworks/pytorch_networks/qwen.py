"""A decoder with norms of queries and keys, rotary positions and attention in one call; embeddings are also the head."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, KEYS, DIM, LAYERS, INNER, WORDS = 32, 4, 2, 8, 2, 40, 50
EPS, BASE = 1e-6, 10000.0


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + EPS))


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, HEADS * DIM, bias=False)
        self.k_proj = nn.Linear(WIDTH, KEYS * DIM, bias=False)
        self.v_proj = nn.Linear(WIDTH, KEYS * DIM, bias=False)
        self.o_proj = nn.Linear(HEADS * DIM, WIDTH, bias=False)
        self.q_norm = RMSNorm(DIM)
        self.k_norm = RMSNorm(DIM)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(b, t, -1, DIM)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(b, t, -1, DIM)).transpose(1, 2)
        v = self.v_proj(x).view(b, t, -1, DIM).transpose(1, 2)
        q = (q * cos) + (rotate_half(q) * sin)
        k = (k * cos) + (rotate_half(k) * sin)
        k = k.repeat_interleave(HEADS // KEYS, dim=1)
        v = v.repeat_interleave(HEADS // KEYS, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = RMSNorm(WIDTH)
        self.self_attn = Attention()
        self.post_attention_layernorm = RMSNorm(WIDTH)
        self.mlp = MLP()

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(LAYERS)])
        self.norm = RMSNorm(WIDTH)
        frequencies = BASE ** (-torch.arange(0, DIM, 2).float() / DIM)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, tokens):
        angles = torch.arange(tokens.shape[1]).float()[:, None] * self.frequencies[None]
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def make():
    return Decoder()


def loss(model, tokens, labels):
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())

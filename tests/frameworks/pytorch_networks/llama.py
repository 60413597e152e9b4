"""A decoder as Hugging Face writes it: rotary positions, grouped keys and values, a gated feed-forward part."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, KEYS, LAYERS, INNER, WORDS = 32, 4, 2, 2, 48, 50
EPS, ROPE_BASE = 1e-5, 10000.0


class LlamaRMSNorm(nn.Module):
    def __init__(self, width, eps=EPS):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.variance_epsilon = eps

    def forward(self, hidden):
        variance = hidden.pow(2).mean(-1, keepdim=True)
        hidden = hidden * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden


class LlamaRotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inverse = 1.0 / (ROPE_BASE ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inverse, persistent=False)

    def forward(self, length):
        freqs = torch.outer(torch.arange(length).float(), self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeat_kv(x, times):
    return x[:, :, None].expand(-1, -1, times, -1, -1).reshape(x.shape[0], -1, *x.shape[2:])


class LlamaAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head_dim = WIDTH // HEADS
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, KEYS * self.head_dim, bias=False)
        self.v_proj = nn.Linear(WIDTH, KEYS * self.head_dim, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden, cos, sin, mask):
        b, t, _ = hidden.shape
        q = self.q_proj(hidden).view(b, t, HEADS, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden).view(b, t, KEYS, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden).view(b, t, KEYS, self.head_dim).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k, v = repeat_kv(k, HEADS // KEYS), repeat_kv(v, HEADS // KEYS)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5
        scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        out = torch.matmul(weights, v)
        out = out.transpose(1, 2).reshape(b, t, WIDTH)
        return self.o_proj(out)


class LlamaMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = LlamaAttention()
        self.mlp = LlamaMLP()
        self.input_layernorm = LlamaRMSNorm(WIDTH)
        self.post_attention_layernorm = LlamaRMSNorm(WIDTH)

    def forward(self, hidden, cos, sin, mask):
        residual = hidden
        hidden = residual + self.self_attn(self.input_layernorm(hidden), cos, sin, mask)
        residual = hidden
        hidden = residual + self.mlp(self.post_attention_layernorm(hidden))
        return hidden


class LlamaModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([LlamaDecoderLayer() for _ in range(LAYERS)])
        self.norm = LlamaRMSNorm(WIDTH)
        self.rotary_emb = LlamaRotaryEmbedding(WIDTH // HEADS)

    def forward(self, tokens):
        hidden = self.embed_tokens(tokens)
        length = tokens.shape[1]
        mask = torch.full((length, length), -1e4).triu(1)
        cos, sin = self.rotary_emb(length)
        for layer in self.layers:
            hidden = layer(hidden, cos, sin, mask)
        return self.norm(hidden)


class LlamaForCausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = LlamaModel()
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


def make():
    return LlamaForCausalLM()


def loss(model, tokens, labels):
    logits = model(tokens)
    return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))

"""llama.py with one product for query, key and value, and one for gate and up."""

import llama
import torch
import torch.nn.functional as F
from llama import HEADS, INNER, KEYS, WIDTH, loss, repeat_kv, rotate_half  # noqa: F401
from torch import nn

JOINED = {
    "self_attn.qkv_proj": {"self_attn.q_proj": 32, "self_attn.k_proj": 16, "self_attn.v_proj": 16},
    "mlp.gate_up_proj": {"mlp.gate_proj": INNER, "mlp.up_proj": INNER},
}


class FusedAttention(llama.LlamaAttention):
    def __init__(self):
        super().__init__()
        del self.q_proj, self.k_proj, self.v_proj
        self.sizes = (WIDTH, KEYS * self.head_dim, KEYS * self.head_dim)
        self.qkv_proj = nn.Linear(WIDTH, sum(self.sizes), bias=False)

    def forward(self, hidden, cos, sin, mask):
        b, t, _ = hidden.shape
        q, k, v = self.qkv_proj(hidden).split(self.sizes, dim=-1)
        q = q.view(b, t, HEADS, self.head_dim).transpose(1, 2)
        k = k.view(b, t, KEYS, self.head_dim).transpose(1, 2)
        v = v.view(b, t, KEYS, self.head_dim).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k, v = repeat_kv(k, HEADS // KEYS), repeat_kv(v, HEADS // KEYS)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5
        weights = F.softmax(scores + mask, dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).reshape(b, t, WIDTH)
        return self.o_proj(out)


class FusedMLP(llama.LlamaMLP):
    def __init__(self):
        super().__init__()
        del self.gate_proj, self.up_proj
        self.gate_up_proj = nn.Linear(WIDTH, 2 * INNER, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.act_fn(gate) * up)


def make():
    model = llama.make()
    for layer in model.model.layers:
        layer.self_attn, layer.mlp = FusedAttention(), FusedMLP()
    return model

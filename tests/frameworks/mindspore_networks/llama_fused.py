"""llama.py with one product for query, key and value, and one for gate and up."""

import llama
from llama import HEADS, INNER, KEYS, RENAMED, WIDTH, loss  # noqa: F401
from mindspore import nn, ops

JOINED = {
    "attention.w_qkv": {"attention.wq": 32, "attention.wk": 16, "attention.wv": 16},
    "feed_forward.w_gate_hidden": {"feed_forward.w1": INNER, "feed_forward.w3": INNER},
}


class FusedAttention(llama.LlamaAttention):
    def __init__(self):
        super().__init__()
        del self.wq, self.wk, self.wv
        self.sizes = (WIDTH, KEYS * self.head_dim, KEYS * self.head_dim)
        self.w_qkv = nn.Dense(WIDTH, sum(self.sizes), has_bias=False)

    def construct(self, x, cos, sin, mask):
        b, t, _ = x.shape
        query, key, value = ops.split(self.w_qkv(x), self.sizes, -1)
        query = ops.transpose(query.reshape(b, t, HEADS, self.head_dim), (0, 2, 1, 3))
        key = ops.transpose(key.reshape(b, t, KEYS, self.head_dim), (0, 2, 1, 3))
        value = ops.transpose(value.reshape(b, t, KEYS, self.head_dim), (0, 2, 1, 3))
        query, key = self.apply_rotary_emb(query, key, cos, sin)
        key, value = self.repeat(key, HEADS // KEYS), self.repeat(value, HEADS // KEYS)
        score = self.mul(self.batch_matmul_q_k(query, key), self.inv_norm_factor)
        weights = self.softmax(self.add(score, mask))
        out = self.batch_matmul(weights, value)
        out = self.merger_head_transpose(out, (0, 2, 1, 3)).reshape(b, t, WIDTH)
        return self.wo(out)


class FusedFeedForward(llama.LlamaFeedForward):
    def __init__(self):
        super().__init__()
        del self.w1, self.w3
        self.w_gate_hidden = nn.Dense(WIDTH, 2 * INNER, has_bias=False)

    def construct(self, x):
        gate, hidden = ops.split(self.w_gate_hidden(x), INNER, -1)
        return self.w2(self.mul(hidden, ops.silu(gate)))


def make():
    model = llama.make()
    for layer in model.model.layers:
        layer.attention, layer.feed_forward = FusedAttention(), FusedFeedForward()
    return model

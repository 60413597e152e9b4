"""The same decoder with the functions of `mint`; attention is written out."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

WIDTH, HEADS, KEYS, DIM, LAYERS, INNER, WORDS = 32, 4, 2, 8, 2, 40, 50
EPS, BASE = 1e-6, 10000.0
RENAMED = (
    ("word_embeddings.embedding_table", "embed_tokens.weight"),
    ("input_norm", "input_layernorm"),
    ("attention.linear_q", "self_attn.q_proj"),
    ("attention.linear_k", "self_attn.k_proj"),
    ("attention.linear_v", "self_attn.v_proj"),
    ("attention.linear_proj", "self_attn.o_proj"),
    ("attention.q_layernorm", "self_attn.q_norm"),
    ("attention.k_layernorm", "self_attn.k_norm"),
    ("pre_mlp_norm", "post_attention_layernorm"),
    ("mlp.gating", "mlp.gate_proj"),
    ("mlp.hidden", "mlp.up_proj"),
    ("mlp.projection", "mlp.down_proj"),
    ("final_norm", "norm"),
)


class RMSNorm(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(width), ms.float32), name="weight")

    def construct(self, x):
        variance = mint.mean(mint.square(x), -1, True)
        return mint.mul(mint.mul(x, mint.rsqrt(mint.add(variance, EPS))), self.weight)


class SelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.linear_q = mint.nn.Linear(WIDTH, HEADS * DIM, bias=False)
        self.linear_k = mint.nn.Linear(WIDTH, KEYS * DIM, bias=False)
        self.linear_v = mint.nn.Linear(WIDTH, KEYS * DIM, bias=False)
        self.linear_proj = mint.nn.Linear(HEADS * DIM, WIDTH, bias=False)
        self.q_layernorm = RMSNorm(DIM)
        self.k_layernorm = RMSNorm(DIM)
        self.scale = DIM**-0.5

    def heads(self, x, count):
        return x.reshape(x.shape[0], x.shape[1], count, DIM)

    def rotate(self, x, cos, sin):
        half = x.shape[-1] // 2
        turned = mint.cat((mint.neg(x[..., half:]), x[..., :half]), -1)
        return mint.add(mint.mul(x, cos), mint.mul(turned, sin))

    def construct(self, x, cos, sin, mask):
        q = mint.transpose(self.q_layernorm(self.heads(self.linear_q(x), HEADS)), 1, 2)
        k = mint.transpose(self.k_layernorm(self.heads(self.linear_k(x), KEYS)), 1, 2)
        v = mint.transpose(self.heads(self.linear_v(x), KEYS), 1, 2)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        k = ops.repeat_elements(k, HEADS // KEYS, axis=1)
        v = ops.repeat_elements(v, HEADS // KEYS, axis=1)
        scores = mint.matmul(q, mint.transpose(k, -2, -1))
        scores = mint.mul(scores, self.scale)
        scores = mint.add(scores, mask)
        weights = mint.nn.functional.softmax(scores, dim=-1)
        out = mint.matmul(weights, v)
        return self.linear_proj(mint.transpose(out, 1, 2).reshape(x.shape[0], x.shape[1], HEADS * DIM))


class MLP(nn.Cell):
    def __init__(self):
        super().__init__()
        self.gating = mint.nn.Linear(WIDTH, INNER, bias=False)
        self.hidden = mint.nn.Linear(WIDTH, INNER, bias=False)
        self.projection = mint.nn.Linear(INNER, WIDTH, bias=False)

    def construct(self, x):
        gate = self.gating(x)
        return self.projection(mint.mul(mint.nn.functional.silu(gate), self.hidden(x)))


class TransformerLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.input_norm = RMSNorm(WIDTH)
        self.attention = SelfAttention()
        self.pre_mlp_norm = RMSNorm(WIDTH)
        self.mlp = MLP()

    def construct(self, x, cos, sin, mask):
        x = mint.add(x, self.attention(self.input_norm(x), cos, sin, mask))
        return mint.add(x, self.mlp(self.pre_mlp_norm(x)))


class GPTModel(nn.Cell):
    def __init__(self, length=10):
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.CellList([TransformerLayer() for _ in range(LAYERS)])
        self.final_norm = RMSNorm(WIDTH)
        angles = np.outer(np.arange(length), BASE ** (-np.arange(0, DIM, 2) / DIM))
        angles = np.concatenate((angles, angles), -1)
        self.cos, self.sin = Tensor(np.cos(angles), ms.float32), Tensor(np.sin(angles), ms.float32)
        self.mask = Tensor(np.triu(np.full((length, length), -1e9), 1), ms.float32)

    def construct(self, tokens):
        x = self.word_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return mint.matmul(self.final_norm(x), mint.transpose(self.word_embeddings.embedding_table, 0, 1))


def make():
    return GPTModel()


def loss(model, tokens, labels):
    return ops.cross_entropy(model(tokens).reshape(-1, WORDS), labels.reshape(-1))

"""The same decoder as model libraries of MindSpore write it: primitives made in the constructor, tables of angles."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH, HEADS, KEYS, LAYERS, INNER, WORDS = 32, 4, 2, 2, 48, 50
EPS, ROPE_BASE = 1e-5, 10000.0
RENAMED = (
    ("tok_embeddings.embedding_weight", "embed_tokens.weight"),
    ("attention.wq", "self_attn.q_proj"),
    ("attention.wk", "self_attn.k_proj"),
    ("attention.wv", "self_attn.v_proj"),
    ("attention.wo", "self_attn.o_proj"),
    ("feed_forward.w1", "mlp.gate_proj"),
    ("feed_forward.w3", "mlp.up_proj"),
    ("feed_forward.w2", "mlp.down_proj"),
    ("attention_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("norm_out", "norm"),
)


class RMSNorm(nn.Cell):
    def __init__(self, dim, eps=EPS):
        super().__init__()
        self.eps = eps
        self.weight = Parameter(Tensor(np.ones(dim), ms.float32), name="weight")
        self.square = ops.Square()
        self.mean = ops.ReduceMean(keep_dims=True)
        self.add = ops.Add()
        self.rsqrt = ops.Rsqrt()
        self.mul = ops.Mul()
        self.mul2 = ops.Mul()

    def construct(self, x):
        norm = self.mean(self.square(x), -1)
        norm = self.rsqrt(self.add(norm, self.eps))
        return self.mul2(self.mul(x, norm), self.weight)


class LlamaEmbedding(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding_weight = Parameter(Tensor(np.ones((WORDS, WIDTH)), ms.float32), name="embedding_weight")
        self.gather = ops.Gather()

    def construct(self, ids):
        return self.gather(self.embedding_weight, ids, 0)


class FreqsMgr(nn.Cell):
    def __init__(self, dim, length):
        super().__init__()
        freqs = 1.0 / ROPE_BASE ** (np.arange(0, dim, 2) / dim)
        angles = np.outer(np.arange(length), freqs)
        angles = np.concatenate((angles, angles), axis=-1)
        self.freqs_cos = Tensor(np.cos(angles), ms.float32)
        self.freqs_sin = Tensor(np.sin(angles), ms.float32)

    def construct(self):
        return self.freqs_cos, self.freqs_sin


class LlamaRotaryEmbedding(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mul = ops.Mul()
        self.add = ops.Add()
        self.neg = ops.Neg()
        self.concat = ops.Concat(axis=-1)

    def rotate(self, x):
        half = x.shape[-1] // 2
        return self.concat((self.neg(x[..., half:]), x[..., :half]))

    def construct(self, q, k, cos, sin):
        q = self.add(self.mul(q, cos), self.mul(self.rotate(q), sin))
        k = self.add(self.mul(k, cos), self.mul(self.rotate(k), sin))
        return q, k


class LlamaAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.head_dim = WIDTH // HEADS
        self.inv_norm_factor = self.head_dim**-0.5
        self.wq = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.wk = nn.Dense(WIDTH, KEYS * self.head_dim, has_bias=False)
        self.wv = nn.Dense(WIDTH, KEYS * self.head_dim, has_bias=False)
        self.wo = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.apply_rotary_emb = LlamaRotaryEmbedding()
        self.batch_matmul_q_k = ops.BatchMatMul(transpose_b=True)
        self.batch_matmul = ops.BatchMatMul()
        self.mul = ops.Mul()
        self.add = ops.Add()
        self.softmax = ops.Softmax()
        self.merger_head_transpose = ops.Transpose()
        self.tile = ops.Tile()

    def repeat(self, x, times):
        b, heads, t, d = x.shape
        x = self.tile(x.reshape(b, heads, 1, t, d), (1, 1, times, 1, 1))
        return x.reshape(b, heads * times, t, d)

    def construct(self, x, cos, sin, mask):
        b, t, _ = x.shape
        query = ops.transpose(self.wq(x).reshape(b, t, HEADS, self.head_dim), (0, 2, 1, 3))
        key = ops.transpose(self.wk(x).reshape(b, t, KEYS, self.head_dim), (0, 2, 1, 3))
        value = ops.transpose(self.wv(x).reshape(b, t, KEYS, self.head_dim), (0, 2, 1, 3))
        query, key = self.apply_rotary_emb(query, key, cos, sin)
        key, value = self.repeat(key, HEADS // KEYS), self.repeat(value, HEADS // KEYS)
        score = self.batch_matmul_q_k(query, key)
        score = self.mul(score, self.inv_norm_factor)
        score = self.add(score, mask)
        weights = self.softmax(score)
        out = self.batch_matmul(weights, value)
        out = self.merger_head_transpose(out, (0, 2, 1, 3)).reshape(b, t, WIDTH)
        return self.wo(out)


class LlamaFeedForward(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Dense(WIDTH, INNER, has_bias=False)
        self.w2 = nn.Dense(INNER, WIDTH, has_bias=False)
        self.w3 = nn.Dense(WIDTH, INNER, has_bias=False)
        self.mul = ops.Mul()

    def construct(self, x):
        gate = ops.silu(self.w1(x))
        hidden = self.w3(x)
        return self.w2(self.mul(hidden, gate))


class LlamaDecodeLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention_norm = RMSNorm(WIDTH)
        self.ffn_norm = RMSNorm(WIDTH)
        self.attention = LlamaAttention()
        self.feed_forward = LlamaFeedForward()
        self.add = ops.Add()

    def construct(self, x, cos, sin, mask):
        h = self.attention(self.attention_norm(x), cos, sin, mask)
        h = self.add(x, h)
        ffn_out = self.feed_forward(self.ffn_norm(h))
        return self.add(h, ffn_out)


class LlamaModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.tok_embeddings = LlamaEmbedding()
        self.layers = nn.CellList([LlamaDecodeLayer() for _ in range(LAYERS)])
        self.norm_out = RMSNorm(WIDTH)
        self.freqs_mgr = FreqsMgr(WIDTH // HEADS, 10)
        self.mask = Tensor(np.triu(np.full((10, 10), -1e4), 1), ms.float32)

    def construct(self, tokens):
        cos, sin = self.freqs_mgr()
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, cos, sin, self.mask)
        return self.norm_out(h)


class LlamaForCausalLM(nn.Cell):
    def __init__(self):
        super().__init__()
        self.model = LlamaModel()
        self.lm_head = nn.Dense(WIDTH, WORDS, has_bias=False)

    def construct(self, tokens):
        return self.lm_head(self.model(tokens))


def make():
    return LlamaForCausalLM()


def loss(model, tokens, labels):
    logits = model(tokens)
    return ops.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1))

"""The same encoder and decoder with names of MindFormers: masks and distances made by NumPy, a Cell for the activation."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH, HEADS, INNER, WORDS = 32, 4, 64, 44
RENAMED = (
    ("embedding_table", "weight"),
    ("SelfAttention", "self_attention"),
    ("EncDecAttention", "cross_attention"),
    ("DenseReluDense", "ff"),
    ("layer_norm_0", "self_norm"),
    ("layer_norm_1", "cross_norm"),
    ("layer_norm_2", "ff_norm"),
)


class T5LayerNorm(nn.Cell):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(dim), ms.float32), name="weight")
        self.eps = eps

    def construct(self, x):
        variance = ops.square(x).mean(-1, keep_dims=True)
        return x * ops.rsqrt(variance + self.eps) * self.weight


class T5Attention(nn.Cell):
    def __init__(self, causal=False, bias=False):
        super().__init__()
        self.q = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.k = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.v = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.o = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.causal = causal
        self.has_bias = bias
        if bias:
            self.relative_attention_bias = nn.Embedding(16, HEADS)

    def shape(self, t):
        return ops.transpose(t.reshape(t.shape[0], -1, HEADS, WIDTH // HEADS), (0, 2, 1, 3))

    def construct(self, x, memory=None, position=None):
        memory = x if memory is None else memory
        q = self.shape(self.q(x))
        k = self.shape(self.k(memory))
        v = self.shape(self.v(memory))
        scores = ops.matmul(q, k.swapaxes(3, 2))
        if self.has_bias:
            n = x.shape[1]
            index = np.clip(np.arange(n)[None] - np.arange(n)[:, None], -7, 7) + 7
            position = ops.expand_dims(
                ops.transpose(self.relative_attention_bias(Tensor(index, ms.int32)), (2, 0, 1)), 0
            )
        if position is not None:
            scores = scores + position
        if self.causal:
            n = x.shape[1]
            scores = scores + Tensor(np.triu(np.ones((n, n)), 1) * -1e9, ms.float32)
        weights = ops.softmax(scores, axis=-1)
        out = ops.matmul(weights, v)
        out = ops.transpose(out, (0, 2, 1, 3)).reshape(x.shape[0], -1, WIDTH)
        return self.o(out), position


class T5DenseReluDense(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wi = nn.Dense(WIDTH, INNER, has_bias=False)
        self.wo = nn.Dense(INNER, WIDTH, has_bias=False)
        self.act = nn.ReLU()

    def construct(self, x):
        return self.wo(self.act(self.wi(x)))


class T5Block(nn.Cell):
    def __init__(self, decoder, bias):
        super().__init__()
        self.layer_norm_0 = T5LayerNorm(WIDTH)
        self.SelfAttention = T5Attention(decoder, bias)
        self.decoder = decoder
        if decoder:
            self.layer_norm_1 = T5LayerNorm(WIDTH)
            self.EncDecAttention = T5Attention()
        self.layer_norm_2 = T5LayerNorm(WIDTH)
        self.DenseReluDense = T5DenseReluDense()

    def construct(self, x, memory=None, position=None):
        a, position = self.SelfAttention(self.layer_norm_0(x), None, position)
        x = x + a
        if self.decoder:
            x = x + self.EncDecAttention(self.layer_norm_1(x), memory)[0]
        return x + self.DenseReluDense(self.layer_norm_2(x)), position


class T5Stack(nn.Cell):
    def __init__(self, decoder):
        super().__init__()
        self.block = nn.CellList([T5Block(decoder, i == 0) for i in range(2)])
        self.final_layer_norm = T5LayerNorm(WIDTH)

    def construct(self, x, memory=None):
        position = None
        for b in self.block:
            x, position = b(x, memory, position)
        return self.final_layer_norm(x)


class T5Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(WORDS, WIDTH)
        self.encoder = T5Stack(False)
        self.decoder = T5Stack(True)
        self.lm_head = nn.Dense(WIDTH, WORDS, has_bias=False)

    def construct(self, ids, targets):
        memory = self.encoder(self.shared(ids))
        return self.lm_head(self.decoder(self.shared(targets), memory))


def make():
    return T5Model()


def loss(model, ids, targets):
    logits = model(ids, targets[:, :-1])
    return ops.cross_entropy(logits.reshape(-1, WORDS), targets[:, 1:].reshape(-1))

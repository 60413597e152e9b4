"""The same decoder; its weights of linear layers lie the other way round (inputs first), and a tied head."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH, HEADS, LAYERS, INNER, WORDS, LENGTH = 32, 4, 2, 64, 45, 12
RENAMED = (
    ("backbone.blocks", "h"),
    ("backbone.layernorm", "ln_f"),
    ("backbone.word_embedding.embedding_table", "wte.weight"),
    ("backbone.position_embedding.embedding_table", "wpe.weight"),
    ("attention.dense1", "attn.c_attn"),
    ("attention.projection", "attn.c_proj"),
    ("output.mapping", "mlp.c_fc"),
    ("output.projection", "mlp.c_proj"),
    ("layernorm1", "ln_1"),
    ("layernorm2", "ln_2"),
    ("gamma", "weight"),
    ("beta", "bias"),
)
TRANSPOSED = ("dense1.weight", "mapping.weight", "projection.weight")
ACTIVATION = "tanh"


class Linear(nn.Cell):
    """As in mindformers: weight of shape (inputs, outputs)."""

    def __init__(self, inside, outside):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones((inside, outside)), ms.float32), name="weight")
        self.bias = Parameter(Tensor(np.ones(outside), ms.float32), name="bias")
        self.matmul = ops.MatMul()
        self.bias_add = ops.Add()

    def construct(self, x):
        shape = x.shape[:-1] + (self.bias.shape[0],)
        x = ops.reshape(x, (-1, x.shape[-1]))
        x = self.matmul(x, self.weight)
        x = self.bias_add(x, self.bias)
        return ops.reshape(x, shape)


class MultiHeadAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense1 = Linear(WIDTH, 3 * WIDTH)
        self.projection = Linear(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5
        self.mask = Tensor(np.tril(np.ones((1, 1, LENGTH, LENGTH))) == 0)
        self.softmax = ops.Softmax(axis=-1)

    def construct(self, x):
        b, t, c = x.shape
        query, key, value = ops.split(self.dense1(x), c, axis=-1)
        query = query.reshape(b, t, HEADS, -1).transpose(0, 2, 1, 3)
        key = key.reshape(b, t, HEADS, -1).transpose(0, 2, 3, 1)
        value = value.reshape(b, t, HEADS, -1).transpose(0, 2, 1, 3)
        score = ops.bmm(query, key)
        score = score * self.scale
        score = score.masked_fill(self.mask[:, :, :t, :t], -1e9)
        weights = self.softmax(score)
        out = ops.bmm(weights, value)
        out = out.transpose(0, 2, 1, 3).reshape(b, t, c)
        return self.projection(out)


class Output(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mapping = Linear(WIDTH, INNER)
        self.projection = Linear(INNER, WIDTH)

    def construct(self, x):
        return self.projection(ops.gelu(self.mapping(x), approximate=ACTIVATION))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layernorm1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.attention = MultiHeadAttention()
        self.layernorm2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.output = Output()

    def construct(self, x):
        x = x + self.attention(self.layernorm1(x))
        return x + self.output(self.layernorm2(x))


class GPTModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.word_embedding = nn.Embedding(WORDS, WIDTH)
        self.position_embedding = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.CellList([Block() for _ in range(LAYERS)])
        self.layernorm = nn.LayerNorm((WIDTH,), epsilon=1e-5)

    def construct(self, tokens):
        positions = ops.arange(tokens.shape[1])
        x = self.word_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.layernorm(x)


class GPTHead(nn.Cell):
    def __init__(self):
        super().__init__()
        self.matmul = ops.MatMul(transpose_b=True)

    def construct(self, x, table):
        return self.matmul(x.reshape(-1, WIDTH), table)


class GPT(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone = GPTModel()
        self.head = GPTHead()

    def construct(self, tokens):
        return self.head(self.backbone(tokens), self.backbone.word_embedding.embedding_table)


def make():
    return GPT()


def loss(model, tokens, labels):
    return ops.cross_entropy(model(tokens), labels.reshape(-1))

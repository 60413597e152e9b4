"""The same experts; the router is a cell of its own, products are taken with `mint`."""

import mindspore as ms
from mindspore import Parameter, mint, nn, ops

WIDTH, INNER, EXPERTS, CHOSEN, WORDS = 24, 32, 4, 2, 40
RENAMED = (
    ("embedding_table", "weight"),
    ("embedding.", "embed."),
    ("layers.", "blocks."),
    ("ffn.router.weight", "moe.gate.weight"),
    ("ffn.shared.", "moe.shared_expert."),
    ("ffn.", "moe."),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("final_norm", "norm"),
    ("output_layer", "head"),
)


class FFN(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Dense(WIDTH, INNER, has_bias=False)
        self.w3 = nn.Dense(WIDTH, INNER, has_bias=False)
        self.w2 = nn.Dense(INNER, WIDTH, has_bias=False)

    def construct(self, x):
        gate = self.w1(x)
        hidden = self.w3(x)
        return self.w2(mint.mul(mint.nn.functional.silu(gate), hidden))


class Router(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(ops.ones((EXPERTS, WIDTH), ms.float32), name="weight")

    def construct(self, x):
        logits = mint.matmul(x, self.weight.T)
        probs = mint.nn.functional.softmax(logits, dim=-1)
        top, index = ops.topk(probs, CHOSEN)
        top = mint.div(top, mint.sum(top, -1, keepdim=True))
        return top, index


class MoELayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.router = Router()
        self.experts = nn.CellList([FFN() for _ in range(EXPERTS)])
        self.shared = FFN()

    def construct(self, x):
        shape = x.shape
        x = x.reshape(-1, WIDTH)
        top, index = self.router(x)
        out = ops.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = mint.where(mint.eq(index, i), top, ops.zeros_like(top))
            share = mint.sum(share, -1, keepdim=True)
            out = mint.add(out, mint.mul(expert(x), share))
        out = mint.add(out, self.shared(x))
        return out.reshape(shape)


class TransformerLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.ffn = MoELayer()

    def construct(self, x):
        out = self.ffn(self.norm(x))
        return mint.add(x, out)


class MoEModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.CellList([TransformerLayer(), TransformerLayer()])
        self.final_norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.output_layer = nn.Dense(WIDTH, WORDS, has_bias=False)

    def construct(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output_layer(self.final_norm(x))


def make():
    return MoEModel()


def loss(model, tokens, labels):
    return ops.cross_entropy(model(tokens).reshape(-1, WORDS), labels.reshape(-1))

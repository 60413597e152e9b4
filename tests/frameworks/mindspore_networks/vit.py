"""The same transformer of images: primitives for the products, the scale on the scores, a class for the residual branch."""

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.ops import operations as P

WIDTH, HEADS, LAYERS, INNER, CLASSES, PATCH, SIDE = 24, 3, 2, 48, 6, 4, 16
RENAMED = (
    ("patch_embedding.conv", "patch_embed.proj"),
    ("class_token", "cls_token"),
    ("pos_embedding", "pos_embed"),
    ("transformer.layers", "blocks"),
    ("0.cell.", "attn."),
    ("1.cell.", "mlp."),
    ("0.norm.", "norm1."),
    ("1.norm.", "norm2."),
    ("attn.out", "attn.proj"),
    ("mlp.dense1", "mlp.fc1"),
    ("mlp.dense2", "mlp.fc2"),
    ("head_norm", "norm"),
    ("gamma", "weight"),
    ("beta", "bias"),
)


class PatchEmbedding(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH, pad_mode="valid", has_bias=True)
        self.reshape = P.Reshape()
        self.transpose = P.Transpose()

    def construct(self, x):
        x = self.conv(x)
        b, c, h, w = x.shape
        x = self.reshape(x, (b, c, h * w))
        return self.transpose(x, (0, 2, 1))


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = (WIDTH // HEADS) ** -0.5
        self.q = nn.Dense(WIDTH, WIDTH)
        self.k = nn.Dense(WIDTH, WIDTH)
        self.v = nn.Dense(WIDTH, WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.mul = P.Mul()
        self.reshape = P.Reshape()
        self.transpose = P.Transpose()
        self.attn_matmul_v = P.BatchMatMul()
        self.q_matmul_k = P.BatchMatMul(transpose_b=True)
        self.softmax = nn.Softmax(axis=-1)

    def split(self, x):
        return self.transpose(self.reshape(x, (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def construct(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = self.q_matmul_k(q, k)
        scores = self.mul(scores, self.scale)
        scores = self.softmax(scores)
        out = self.attn_matmul_v(scores, v)
        out = self.reshape(self.transpose(out, (0, 2, 1, 3)), x.shape)
        return self.out(out)


class FeedForward(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense1 = nn.Dense(WIDTH, INNER)
        self.activation = nn.GELU(approximate=False)
        self.dense2 = nn.Dense(INNER, WIDTH)

    def construct(self, x):
        return self.dense2(self.activation(self.dense1(x)))


class ResidualCell(nn.Cell):
    def __init__(self, cell):
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-6)
        self.cell = cell

    def construct(self, x):
        return self.cell(self.norm(x)) + x


class TransformerEncoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList(
            [nn.SequentialCell([ResidualCell(Attention()), ResidualCell(FeedForward())]) for _ in range(LAYERS)]
        )

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ViT(nn.Cell):
    def __init__(self):
        super().__init__()
        self.patch_embedding = PatchEmbedding()
        self.class_token = Parameter(ops.zeros((1, 1, WIDTH), ms.float32), name="class_token")
        self.pos_embedding = Parameter(
            ops.zeros((1, (SIDE // PATCH) ** 2 + 1, WIDTH), ms.float32), name="pos_embedding"
        )
        self.transformer = TransformerEncoder()
        self.head_norm = nn.LayerNorm((WIDTH,), epsilon=1e-6)
        self.head = nn.Dense(WIDTH, CLASSES)
        self.concat = P.Concat(1)
        self.tile = P.Tile()

    def construct(self, images):
        x = self.patch_embedding(images)
        token = self.tile(self.class_token, (x.shape[0], 1, 1))
        x = self.concat((token, x)) + self.pos_embedding
        x = self.head_norm(self.transformer(x))
        return self.head(x[:, 0])


def make():
    return ViT()


def loss(model, images, labels):
    return ops.cross_entropy(model(images), labels, label_smoothing=0.1)

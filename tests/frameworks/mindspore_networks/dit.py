"""The same diffusion transformer; norms are primitives without weights, the layout is changed by a transpose."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH, HEADS, LAYERS, PATCH, SIDE = 24, 3, 2, 2, 8
RENAMED = (
    ("patch_embed.proj", "x_embedder"),
    ("time_embed.", "t_embedder.mlp."),
    ("label_embed.embedding_table", "y_embedder.weight"),
    ("adaln", "adaLN_modulation"),
    ("attention.", "attn."),
    ("ffn.0", "mlp.fc1"),
    ("ffn.2", "mlp.fc2"),
    ("final.", "final_layer."),
)


def t2i_modulate(x, shift, scale):
    return x * (scale.expand_dims(1) + 1) + shift.expand_dims(1)


class PatchEmbed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH, pad_mode="valid", has_bias=True)

    def construct(self, x):
        x = self.proj(x)
        return x.reshape(x.shape[0], WIDTH, -1).swapaxes(1, 2)


class MultiHeadAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(WIDTH, 3 * WIDTH)
        self.proj = nn.Dense(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5

    def construct(self, x):
        b, n, _ = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = ops.softmax(ops.matmul(q, k.swapaxes(-2, -1)) * self.scale, axis=-1)
        out = ops.matmul(attn, v)
        return self.proj(out.swapaxes(1, 2).reshape(b, n, WIDTH))


class DiTBlock(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = ops.LayerNorm(begin_norm_axis=2, begin_params_axis=2, epsilon=1e-6)
        self.ones, self.zeros = ops.ones(WIDTH, ms.float32), ops.zeros(WIDTH, ms.float32)
        self.attention = MultiHeadAttention()
        self.ffn = nn.SequentialCell(nn.Dense(WIDTH, 2 * WIDTH), nn.GELU(approximate=True), nn.Dense(2 * WIDTH, WIDTH))
        self.adaln = nn.SequentialCell(nn.SiLU(), nn.Dense(WIDTH, 6 * WIDTH))

    def construct(self, x, c):
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = ops.chunk(self.adaln(c), 6, axis=1)
        normed = self.norm(x, self.ones, self.zeros)[0]
        x = x + gate_a.expand_dims(1) * self.attention(t2i_modulate(normed, shift_a, scale_a))
        normed = self.norm(x, self.ones, self.zeros)[0]
        x = x + gate_m.expand_dims(1) * self.ffn(t2i_modulate(normed, shift_m, scale_m))
        return x


class FinalLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = ops.LayerNorm(begin_norm_axis=2, begin_params_axis=2, epsilon=1e-6)
        self.ones, self.zeros = ops.ones(WIDTH, ms.float32), ops.zeros(WIDTH, ms.float32)
        self.linear = nn.Dense(WIDTH, PATCH * PATCH * 3)
        self.adaln = nn.SequentialCell(nn.SiLU(), nn.Dense(WIDTH, 2 * WIDTH))

    def construct(self, x, c):
        shift, scale = ops.chunk(self.adaln(c), 2, axis=1)
        return self.linear(t2i_modulate(self.norm(x, self.ones, self.zeros)[0], shift, scale))


class DiT(nn.Cell):
    def __init__(self):
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.time_embed = nn.SequentialCell(nn.Dense(WIDTH, WIDTH), nn.SiLU(), nn.Dense(WIDTH, WIDTH))
        self.label_embed = nn.Embedding(10, WIDTH)
        self.pos_embed = Parameter(Tensor(np.zeros((1, (SIDE // PATCH) ** 2, WIDTH)), ms.float32), name="pos_embed")
        self.blocks = nn.CellList([DiTBlock() for _ in range(LAYERS)])
        self.final = FinalLayer()
        half = WIDTH // 2
        self.freqs = Tensor(np.exp(-math.log(10000) * np.arange(half) / half), ms.float32)

    def sinusoid(self, t):
        args = t.astype(ms.float32).expand_dims(1) * self.freqs
        return ops.concat((ops.cos(args), ops.sin(args)), axis=-1)

    def construct(self, x, t, y):
        x = self.patch_embed(x) + self.pos_embed
        c = self.time_embed(self.sinusoid(t)) + self.label_embed(y)
        for block in self.blocks:
            x = block(x, c)
        x = self.final(x, c)
        n = SIDE // PATCH
        x = x.reshape(-1, n, n, PATCH, PATCH, 3).transpose(0, 5, 1, 3, 2, 4)
        return x.reshape(-1, 3, SIDE, SIDE)


def make():
    return DiT()


def loss(model, images, steps, labels, noise):
    return ops.mse_loss(model(images, steps, labels), noise)

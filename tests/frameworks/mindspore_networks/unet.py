"""The same U-Net with its layers in sequences, activations as Cells, and the size of the output for the scale."""

from mindspore import nn, ops

RENAMED = (
    ("in_layers.0", "norm1"),
    ("in_layers.2", "conv1"),
    ("out_layers.0", "norm2"),
    ("out_layers.2", "conv2"),
    ("skip_connection", "skip"),
    ("input_block", "conv_in"),
    ("down.", "down1."),
    ("middle", "mid"),
    ("out_norm", "norm_out"),
    ("out_conv", "conv_out"),
    ("gamma", "weight"),
    ("beta", "bias"),
)


def conv(i, o, k):
    return nn.Conv2d(i, o, k, pad_mode="pad", padding=k // 2, has_bias=True)


class ResBlock(nn.Cell):
    def __init__(self, i, o):
        super().__init__()
        self.in_layers = nn.SequentialCell(nn.GroupNorm(4, i), nn.SiLU(), conv(i, o, 3))
        self.out_layers = nn.SequentialCell(nn.GroupNorm(4, o), nn.SiLU(), conv(o, o, 3))
        self.skip_connection = conv(i, o, 1) if i != o else nn.Identity()

    def construct(self, x):
        return self.skip_connection(x) + self.out_layers(self.in_layers(x))


class UNetModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.input_block = conv(3, 8, 3)
        self.down = ResBlock(8, 16)
        self.pool = nn.MaxPool2d(2, 2)
        self.middle = ResBlock(16, 16)
        self.up = ResBlock(32, 8)
        self.out_norm = nn.GroupNorm(4, 8)
        self.act = nn.SiLU()
        self.out_conv = conv(8, 3, 3)

    def construct(self, x):
        x = self.input_block(x)
        d = self.down(x)
        m = self.middle(self.pool(d))
        u = ops.interpolate(m, size=(m.shape[2] * 2, m.shape[3] * 2), mode="nearest")
        u = self.up(ops.cat((u, d), axis=1))
        return self.out_conv(self.act(self.out_norm(u)))


def make():
    return UNetModel()


def loss(model, images, labels):
    return ops.mse_loss(model(images), labels)

"""The same mixer with layers of mint, and the loss in one function."""

from mindspore import mint, nn, ops

WIDTH, TOKENS, CLASSES = 24, 16, 6
RENAMED = (
    ("token_mixing", "mlp_tokens"),
    ("channel_mixing", "mlp_channels"),
    ("ln1", "norm1"),
    ("ln2", "norm2"),
    ("ln_f", "norm"),
    ("patch", "stem"),
    ("classifier", "head"),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("moving_mean", "running_mean"),
    ("moving_variance", "running_var"),
    ("dense_in", "fc1"),
    ("dense_out", "fc2"),
)


class MlpBlock(nn.Cell):
    def __init__(self, d, h):
        super().__init__()
        self.dense_in = mint.nn.Linear(d, h)
        self.dense_out = mint.nn.Linear(h, d)

    def construct(self, x):
        return self.dense_out(ops.gelu(self.dense_in(x), approximate="tanh"))


class MixerLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.token_mixing = MlpBlock(TOKENS, 20)
        self.ln2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.channel_mixing = MlpBlock(WIDTH, 40)

    def construct(self, x):
        y = mint.permute(self.ln1(x), (0, 2, 1))
        y = mint.permute(self.token_mixing(y), (0, 2, 1))
        x = mint.add(x, y)
        return mint.add(x, self.channel_mixing(self.ln2(x)))


class MlpMixer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, 4, stride=4, pad_mode="valid")
        self.bn = nn.BatchNorm2d(WIDTH)
        self.blocks = nn.CellList([MixerLayer() for _ in range(3)])
        self.ln_f = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.classifier = mint.nn.Linear(WIDTH, CLASSES)

    def construct(self, x):
        x = self.bn(self.patch(x))
        b, c = x.shape[:2]
        x = mint.permute(x.reshape(b, c, -1), (0, 2, 1))
        for block in self.blocks:
            x = block(x)
        x = mint.mean(self.ln_f(x), dim=1)
        return self.classifier(x)


def make():
    return MlpMixer()


def loss(model, images, labels):
    return ops.cross_entropy(model(images), labels)

"""The same network, each convolution with its norm and activation in one cell."""

from mindspore import nn, ops

RENAMED = (
    ("moving_mean", "running_mean"),
    ("moving_variance", "running_var"),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("conv_bn.features", "stem"),
    ("layers.0.", "block1."),
    ("layers.1.", "block2."),
    ("expand.features.0", "conv_pw"),
    ("expand.features.1", "bn1"),
    ("depthwise.features.0", "conv_dw"),
    ("depthwise.features.1", "bn2"),
    ("project.0", "conv_pwl"),
    ("project.1", "bn3"),
    ("squeeze_excite", "se"),
    ("se.fc1", "se.conv_reduce"),
    ("se.fc2", "se.conv_expand"),
    ("downsample", "down"),
    ("upsample", "up"),
    ("merge", "fuse"),
    ("classifier", "head"),
)


class ConvNormActivation(nn.Cell):
    def __init__(self, inside, outside, size, group=1, activation=nn.ReLU6):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(inside, outside, size, pad_mode="pad", padding=size // 2, group=group, has_bias=False),
            nn.BatchNorm2d(outside),
            activation(),
        )

    def construct(self, x):
        return self.features(x)


class SqueezeExcite(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.pool = ops.ReduceMean(keep_dims=True)
        self.fc1 = nn.Conv2d(channels, channels // 4, 1, has_bias=True)
        self.relu = nn.ReLU()
        self.fc2 = nn.Conv2d(channels // 4, channels, 1, has_bias=True)
        self.sigmoid = nn.Sigmoid()
        self.mul = ops.Mul()

    def construct(self, x):
        out = self.pool(x, (2, 3))
        out = self.fc2(self.relu(self.fc1(out)))
        return self.mul(x, self.sigmoid(out))


class InvertedResidual(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        hidden = 2 * channels
        self.expand = ConvNormActivation(channels, hidden, 1)
        self.depthwise = ConvNormActivation(hidden, hidden, 3, group=hidden)
        self.squeeze_excite = SqueezeExcite(hidden)
        self.project = nn.SequentialCell(nn.Conv2d(hidden, channels, 1, has_bias=False), nn.BatchNorm2d(channels))
        self.add = ops.Add()

    def construct(self, x):
        out = self.depthwise(self.expand(x))
        out = self.project(self.squeeze_excite(out))
        return self.add(out, x)


class SegmentationNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv_bn = ConvNormActivation(3, 8, 3, activation=nn.ReLU)
        self.downsample = nn.Conv2d(8, 16, 2, stride=2, pad_mode="valid", has_bias=True)
        self.layers = nn.SequentialCell(InvertedResidual(16), InvertedResidual(16))
        self.upsample = nn.Conv2dTranspose(16, 8, 2, stride=2, pad_mode="valid", has_bias=True)
        self.merge = nn.Conv2d(16, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.relu = nn.ReLU()
        self.classifier = nn.Conv2d(8, 1, 1, has_bias=True)
        self.concat = ops.Concat(axis=1)

    def construct(self, images):
        low = self.conv_bn(images)
        x = self.relu(self.downsample(low))
        x = self.upsample(self.layers(x))
        x = self.concat((low, x))
        return self.classifier(self.relu(self.merge(x)))


def make():
    return SegmentationNet()


def loss(model, images, masks):
    return nn.BCEWithLogitsLoss()(model(images), masks)

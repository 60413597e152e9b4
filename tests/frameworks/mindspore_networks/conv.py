"""The same convolutions; layers of `nn`, one helper that makes a convolution and its norm."""

from mindspore import nn, ops

CLASSES = 5
RENAMED = (
    ("norm.gamma", "norm.weight"),
    ("norm.beta", "norm.bias"),
    (".gamma", ".weight"),
    (".beta", ".bias"),
    (".moving_mean", ".running_mean"),
    (".moving_variance", ".running_var"),
    ("down_sample_layer", "downsample"),
    ("end_point", "fc"),
    ("stem.0", "conv1"),
    ("stem.1", "bn1"),
)


def conv(inside, outside, size, stride=1, has_bias=False):
    return nn.Conv2d(inside, outside, size, stride, pad_mode="pad", padding=size // 2, has_bias=has_bias)


class ResidualBlockBase(nn.Cell):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = conv(inside, outside, 3, stride)
        self.bn1 = nn.BatchNorm2d(outside, eps=1e-5, momentum=0.9)
        self.conv2 = conv(outside, outside, 3)
        self.bn2 = nn.BatchNorm2d(outside, eps=1e-5, momentum=0.9)
        self.down_sample_layer = nn.SequentialCell([conv(inside, outside, 1, stride), nn.BatchNorm2d(outside)])

    def construct(self, x):
        identity = self.down_sample_layer(x)
        out = ops.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + identity
        return ops.relu(out)


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell([conv(3, 8, 3, has_bias=True), nn.BatchNorm2d(8), nn.ReLU()])
        self.max_pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.layer1 = ResidualBlockBase(8, 8, 1)
        self.layer2 = ResidualBlockBase(8, 16, 2)
        self.head_norm = nn.GroupNorm(4, 16, eps=1e-5)
        self.act = nn.LeakyReLU(0.1)
        self.end_point = nn.Dense(16, CLASSES)

    def construct(self, x):
        x = self.max_pool(self.stem(x))
        x = self.layer2(self.layer1(x))
        x = self.act(self.head_norm(x))
        x = ops.mean(x, (2, 3))
        return self.end_point(x)


def make():
    return ResNet()


def loss(model, images, labels):
    return ops.cross_entropy(model(images), labels)

"""Several outputs of which one is not used, a returned input, and outputs in a list."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Part(nn.Cell):
    def construct(self, x, y):
        return x * 2, ops.tanh(x) * y, y


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.part = nn.Dense(8, 8), nn.Dense(8, 8), Part()

    def construct(self, x):
        p, q, r = self.part(self.a(x), self.b(x))
        return q * 3 + r


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

"""A Cell that gets one tensor at two positions: each has its own gradient."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Product(nn.Cell):
    def construct(self, a, b):
        return ops.tanh(a) * b


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.product = nn.Dense(8, 8), Product()

    def construct(self, x):
        h = self.a(x)
        return self.product(h, h)


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

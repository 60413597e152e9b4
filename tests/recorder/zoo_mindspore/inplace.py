"""Operators that work in place between Cells: each Cell saw what was there when it was called."""

import mindspore as ms
import numpy as np
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.seen, self.b = nn.Dense(8, 8), nn.Identity(), nn.Dense(8, 2)

    def construct(self, x):
        h = self.a(x) * 1.0
        self.seen(h)
        h += 1.0
        h[:, 0] = 0.5
        return self.b(h)


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

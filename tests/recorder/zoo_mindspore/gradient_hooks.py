"""Hooks of tensors and of parameters that change gradients."""

import mindspore as ms
import numpy as np
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Dense(8, 8), nn.Dense(8, 8), nn.Dense(8, 2)

    def construct(self, x):
        h = self.a(x)
        h.register_hook(lambda g: g * 3)
        return self.c(self.b(h))


def build():
    net = Net()
    net.b.weight.register_hook(lambda g: g * 0.5)
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

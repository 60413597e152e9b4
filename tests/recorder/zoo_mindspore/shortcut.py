"""A residual block whose shortcut is an Identity: its gradient is that of its own branch."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.shortcut, self.l = nn.Identity(), nn.Dense(8, 8)

    def construct(self, x):
        return ops.tanh(self.l(x)) + self.shortcut(x) * 2


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.block = nn.Dense(8, 8), Block()

    def construct(self, x):
        return self.block(self.a(x))


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

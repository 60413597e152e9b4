"""A Cell whose auxiliary loss is kept in an attribute: its share belongs to the argument's gradient."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Part(nn.Cell):
    def __init__(self):
        super().__init__()
        self.l, self.router = nn.Dense(8, 8), nn.Dense(8, 3)

    def construct(self, x):
        self.l_aux = ops.softmax(self.router(x)).square().sum()
        return ops.tanh(self.l(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.moe, self.b = nn.Dense(8, 8), Part(), nn.Dense(8, 2)

    def construct(self, x):
        y = self.b(self.moe(self.a(x)))
        return y.sum() + self.moe.l_aux * 10


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

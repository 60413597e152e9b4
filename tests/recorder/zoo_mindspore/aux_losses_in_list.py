"""Auxiliary losses of Cells within Cells, one in a list, one that the loss leaves out, added up outside of the network."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Part(nn.Cell):
    def __init__(self):
        super().__init__()
        self.l, self.router = nn.Dense(8, 8), nn.Dense(8, 3)

    def construct(self, x):
        chosen = ops.softmax(self.router(x))
        self.losses = [chosen.square().sum(), chosen.sum()]
        self.unused = ops.exp(x).sum()
        return ops.tanh(self.l(x))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.moe, self.l = Part(), nn.Dense(8, 8)

    def construct(self, x):
        return self.l(self.moe(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.block, self.b = nn.Dense(8, 8), Block(), nn.Dense(8, 2)

    def construct(self, x):
        return self.b(self.block(self.a(x)))


def build():
    net = Net()

    def loss_of(x):
        return net(x).square().sum() + net.block.moe.losses[0] * 10

    run = ms.value_and_grad(loss_of, None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

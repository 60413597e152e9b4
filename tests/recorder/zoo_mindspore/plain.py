"""Dense layers and SGD."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(8, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.b(ops.tanh(self.a(x)))


def build():
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())

    def step(i):
        loss, gradients = run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))
        optimizer(gradients)
        return [loss, gradients]

    return net, step

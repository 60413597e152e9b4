"""A Cell that is called twice, and one known under two names."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(8, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.b(self.a(ops.relu(self.a(x))))


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

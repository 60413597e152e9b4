"""Forward hooks and forward pre hooks that change what goes in and comes out."""

import mindspore as ms
import numpy as np
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(8, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.b(self.a(x))


def build():
    net = Net()
    net.a.register_forward_hook(lambda cell, args, output: output * 3)
    net.b.register_forward_pre_hook(lambda cell, args: (args[0] * 2,))
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

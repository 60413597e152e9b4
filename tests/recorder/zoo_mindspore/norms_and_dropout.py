"""Convolution, batch norm with running statistics, dropout in eval mode, and layer norm."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.ln = nn.Dropout(p=0.5), nn.LayerNorm((4,))

    def construct(self, x):
        h = self.norm(self.conv(x.reshape(2, 1, 4, 4)))
        return self.ln(self.drop(ops.relu(h)).mean((2, 3)))


def build():
    net = Net()
    net.set_train()
    net.drop.set_train(False)
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

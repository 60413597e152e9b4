"""A network in float16 with checksums, and more elements than the fast path of small tensors takes."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops

SUMMARY = "md5"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(8, 3000).to_float(ms.float16), nn.Dense(3000, 2)

    def construct(self, x):
        return self.b(ops.tanh(self.a(x)).astype(ms.float32))


def build():
    net = Net()
    run = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    return net, lambda i: run(ms.Tensor(np.random.randn(4, 8).astype(np.float32)))

"""Tensors that are recorded and then changed where they lie, in every way that MindSpore has, prints what each was.

usage: changing_scenario.py DUMP_PATH LEVEL
"""

import json
import os
import sys

os.environ["GLOG_v"] = "4"
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)
START = np.array([[-1.5, 2.0], [0.5, -4.0]], np.float32)


def write_by_numpy(y):
    y.asnumpy()[...] = 9


def set_item(y):
    y[0] = 7.0


def iadd(y):
    y += 1


def put_data(y):
    y.data = Tensor(np.zeros((2, 2), np.float32))


@ms.jit
def assign_compiled(parameter, value):
    ops.assign(parameter, value)
    return value


ONES = Tensor(np.ones((2, 2), np.float32))
OF_TENSORS = {
    "add_": lambda y: y.add_(1.0),
    "mul_": lambda y: y.mul_(3.0),
    "copy_": lambda y: y.copy_(ONES),
    "__setitem__": set_item,
    "+=": iadd,
    "numpy": write_by_numpy,
    "data": put_data,
    "of a view": lambda y: y[0].mul_(5.0),
    "of a transposed view": lambda y: y.swapaxes(0, 1).add_(5.0),
}
OF_PARAMETERS = {
    "assign": lambda p: ops.assign(p, ONES),
    "assign_add": lambda p: ops.assign_add(p, ONES),
    "Assign": lambda p: ops.Assign()(p, ONES),
    "set_data": lambda p: p.set_data(ONES),
    "scatter_update": lambda p: ops.scatter_update(p, Tensor([0], ms.int32), Tensor([[3.0, 3.0]])),
    "compiled": lambda p: assign_compiled(p, ONES),
}


class Twice(nn.Cell):
    """Its output is recorded, and its parameter is."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(START), name="weight")

    def construct(self, x):
        return ops.mul(x, self.weight)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.twice = Twice()
        self.norm = nn.BatchNorm1d(2)

    def construct(self, x):
        return self.norm(self.twice(x))


def main(dump_path, level):
    debugger = PrecisionDebugger(task="tensor", level=level, dump_path=dump_path)
    net = Net()
    net.set_train()
    weight, outputs, weights, means, ran = net.twice.weight, [], [], [], []
    x = Tensor(np.full((2, 2), 2.0, np.float32))
    debugger.start(net)
    for name, change in OF_TENSORS.items():
        y = net.twice(x)
        outputs.append((START * 2).tolist())
        weights.append(START.tolist())
        change(y)
        ran.append(name)
    for name, change in OF_PARAMETERS.items():
        weight.set_data(Tensor(START))
        net.twice(x)
        outputs.append((START * 2).tolist())
        weights.append(START.tolist())
        change(weight)
        ran.append(name)
    weight.set_data(Tensor(START))
    for _ in range(2):  # a norm changes its running mean
        net(x)
        outputs.append((START * 2).tolist())
        weights.append(START.tolist())
        means.append(np.array(net.norm.moving_mean.asnumpy()).tolist())
    optimizer = nn.Momentum([weight], 0.5, 0.9)
    loss, grads = ms.value_and_grad(lambda x: net.twice(x).sum(), None, [weight])(x)
    outputs.append((START * 2).tolist())
    weights.append(START.tolist())
    optimizer(grads)
    debugger.stop()
    debugger.step()
    changed = weight.asnumpy().tolist()
    print(json.dumps({"outputs": outputs, "weights": weights, "means": means, "ran": ran, "changed": changed}))


main(*sys.argv[1:])

"""Trains small networks in this process, first while PrecisionDebugger records and then twice without it, and prints
what each run computed: checksums of losses, gradients and parameters after each step, and the next random numbers. The two
bare runs are the control: where they differ, a difference of the recorded one says nothing.

usage: train_networks.py DUMP_PATH LEVEL TASK [NAME ...]
LEVEL L2 trains once, in GRAPH_MODE, where MindSpore reads what to record when it begins; DUMP_PATH "" is that without it.
"""

import json
import os
import sys
import zlib

os.environ["GLOG_v"] = "4"
import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)


def data(*shape):
    return Tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


class Convolutions(nn.Cell):
    """Convolutions, a norm with running statistics, views with strides."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Dense(4 * 64, 5)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv(x))).swapaxes(2, 3)
        return self.fc(ops.flatten(x))


class Residual(nn.Cell):
    """Every input of a Cell is used once more beside it; some parts of a tensor go their own way."""

    def __init__(self, drops=False):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(8, 8) for _ in range(3)])
        self.norm = nn.LayerNorm((8,))
        self.drops = drops

    def construct(self, x):
        for layer in self.layers:
            y = ops.gelu(layer(self.norm(x)))
            if self.drops:
                # nn.Dropout without a seed is not repeatable on a CPU, tool or not: two bare runs differ.
                y = ops.dropout(y, p=0.3, training=True, seed=5) * (ops.rand(*y.shape) > 0.1)
            x = x + y
            a, b = ops.chunk(x, 2, -1)
            x = ops.concat((a * 1.5, b), -1)
        return x


class Compiled(nn.Cell):
    """A Cell and a function that ms.jit compiles, and Cells around them that it does not."""

    def __init__(self):
        super().__init__()

        class Inner(nn.Cell):
            def __init__(self):
                super().__init__()
                self.fc = nn.Dense(8, 8)
                self.act = nn.ReLU()

            @ms.jit
            def construct(self, x):
                return self.act(self.fc(x)) * 2

        @ms.jit
        def squash(x):
            return ops.tanh(x) + ops.relu(x)

        self.inner = Inner()
        self.out = nn.Dense(8, 3)
        self.squash = squash

    def construct(self, x):
        return self.out(self.squash(self.inner(x)))


class Scaled(nn.Cell):
    """The few operators that a CPU has for bfloat16."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(data(8, 8).astype(ms.bfloat16), name="w")
        self.act = ops.Mul()

    def construct(self, x):
        h = x.astype(ms.bfloat16)
        h = self.act(h, self.w) + h
        return ops.concat((h.T * 2, h)).astype(ms.float32)


class Bfloat16(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled()

    def construct(self, x):
        return self.scaled(x)


class MeanOfSquares(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x):
        return (self.net(x) ** 2).mean()


def computes_bfloat16():
    """A CPU does it since MindSpore 2.9."""
    try:
        return ops.Mul()(data(2).astype(ms.bfloat16), data(2).astype(ms.bfloat16)).float().asnumpy() is not None
    except (RuntimeError, TypeError):
        return False


NETWORKS = {
    "convolutions": (Convolutions, (4, 1, 8, 8), nn.Adam),
    "residual": (Residual, (4, 8), nn.Momentum),
    "compiled": (Compiled, (4, 8), nn.SGD),
    "bfloat16": (Bfloat16, (8, 8), None),
    "stepped": (Residual, (4, 8), nn.TrainOneStepCell),
    "dropout": (lambda: Residual(drops=True), (4, 8), nn.Adam),
}


if not computes_bfloat16():
    del NETWORKS["bfloat16"]


def checksum(tensor):
    return zlib.crc32((tensor.float() if tensor.dtype == ms.bfloat16 else tensor).asnumpy().tobytes())


def train(name, debugger):
    """Returns the checksums of three steps."""
    make, shape, optimizer = NETWORKS[name]
    ms.set_seed(3)
    np.random.seed(3)
    net = make()
    net.set_train()
    x, params = data(*shape), net.trainable_params()
    loss_of = MeanOfSquares(net)
    step, update = ms.value_and_grad(loss_of, None, params), None
    if optimizer is nn.TrainOneStepCell:  # the optimizer is a Cell of the network that is trained
        trains = optimizer(loss_of, nn.Adam(params, 0.01))
        trains.set_train()
        step = lambda x: (trains(x), ())  # noqa: E731
    elif optimizer is not None:
        update = optimizer(params, 0.01, 0.9) if optimizer is nn.Momentum else optimizer(params, 0.01)
    steps = []
    for _ in range(3):
        if debugger:
            debugger.start(net)
        loss, grads = step(x)
        if update is not None:
            update(grads)
        elif grads:
            for param, grad in zip(params, grads):
                param.set_data(param - (grad * 0.05).astype(param.dtype))
        if debugger:
            debugger.stop()
            debugger.step()
        steps.append([checksum(loss), [checksum(g) for g in grads], [checksum(p) for p in net.get_parameters()]])
    return [*steps, ops.rand(4).asnumpy().tolist(), np.random.rand()]


def present_functions():
    """Everything callable in the namespaces whose functions are recorded, by name."""
    spaces = {"ops": ops, "mint": mint, "functional": mint.nn.functional, "Tensor": Tensor, "call": ops.ReLU}
    return {(space, name): value for space, of in spaces.items() for name, value in vars(of).items() if callable(value)}


def same_objects(before, after):
    return before.keys() == after.keys() and all(after[key] is value for key, value in before.items())


def main(dump_path, level, task, *names):
    if level == "L2":
        ms.set_context(mode=ms.GRAPH_MODE)
        debugger = PrecisionDebugger(task=task, dump_path=dump_path, level=level) if dump_path else None
        return print(json.dumps({name: train(name, debugger) for name in names}))
    functions = present_functions()
    debugger = PrecisionDebugger(task=task, dump_path=dump_path, level=level)
    idle = same_objects(functions, present_functions())
    recorded = {name: train(name, debugger) for name in names or NETWORKS}
    same = same_objects(functions, present_functions())
    bare = {name: train(name, None) for name in names or NETWORKS}
    again = {name: train(name, None) for name in names or NETWORKS}
    whole = {"release": ms.__version__, "idle": idle, "restored": same}
    print(json.dumps({"recorded": recorded, "bare": bare, "again": again, **whole}))


main(*sys.argv[1:])

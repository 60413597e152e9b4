"""One small network of MindSpore, recorded as the arguments say.

usage: capture_scenario.py MODEL DUMP_PATH CONFIG_JSON [STEPS [older]]
older: msprobe meets MindSpore as it was before 2.10 (older_release.py).
"""

import json
import os
import sys

os.environ["GLOG_v"] = "4"
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from older_release import as_older

if sys.argv[-1] == "older":
    put_back = as_older()
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)


def numbers(*shape):
    return Tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


class Small(nn.Cell):
    """A product, a residual branch that uses its input twice more, and a part of a tensor."""

    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 4)
        self.second = nn.Dense(4, 4)
        self.act = nn.ReLU()

    def construct(self, x):
        h = self.act(self.first(x))
        h = h + self.second(h) * h
        a, b = ops.chunk(h, 2, -1)
        return a * 2 + b


class Dropping(Small):
    def construct(self, x):
        return ops.dropout(super().construct(x), p=0.5, training=True, seed=1)


class Overflowing(Small):
    def construct(self, x):
        return ops.log(super().construct(x) * 0)


class Raising(Small):
    def construct(self, x):
        super().construct(x)
        raise ValueError("of the script")


class Mismatched(Small):
    def construct(self, x):
        return ops.matmul(super().construct(x), x)


class InPlace(Small):
    def construct(self, x):
        h = self.first(x)
        y = h * 1
        y.add_(1.0)
        return y


class Normed(nn.Cell):
    """A norm that keeps statistics of its batches."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, use_batch_statistics=True)

    def construct(self, x):
        return self.norm(x) ** 2


class Biased(nn.Cell):
    """Uses what it also returns as it came, as attention does with a bias by position."""

    def construct(self, x, bias):
        return ops.relu(x + bias), bias


class Returning(Small):
    def __init__(self):
        super().__init__()
        self.biased = Biased()

    def construct(self, x):
        bias = self.second(x)
        h, bias = self.biased(self.first(x), bias)
        return h + bias


class Shared(Small):
    """Functions and a Primitive that are given one tensor at two of their places."""

    def __init__(self):
        super().__init__()
        self.mul = ops.Mul()

    def construct(self, x):
        h = self.first(x)
        return h * h + ops.sub(h, h) + self.mul(h, h) + ops.addcmul(h, h, h, 2.0)


class Brittle(nn.Cell):
    def construct(self, x):
        ops.abs(x)
        raise ValueError("of a Cell")


class Caught(Small):
    """A Cell raises, and the script goes on."""

    def __init__(self):
        super().__init__()
        self.brittle = Brittle()

    def construct(self, x):
        try:
            self.brittle(x)
        except ValueError:
            x = ops.tanh(x)
        return super().construct(x)


KINDS = (Small, Dropping, Overflowing, Raising, Mismatched, InPlace, Normed, Returning, Shared, Caught)
MODELS = {kind.__name__.lower(): kind for kind in KINDS}


def main(model, dump_path, config, steps="1", release=""):
    ms.set_seed(1)
    path = dump_path + ".json"
    with open(path, "w") as file:
        json.dump({"dump_path": dump_path, **json.loads(config)}, file)
    debugger = PrecisionDebugger(config_path=path)
    if release:
        put_back()
    net = MODELS[model]()
    params = net.trainable_params()
    for param in params:
        param.set_data(numbers(*param.shape))
    step = ms.value_and_grad(lambda x: net(x).sum(), None, params)
    x = numbers(3, 4)
    for _ in range(int(steps)):
        debugger.start(net)
        try:
            loss, grads = step(x)
        except ValueError as error:
            print("RAISED", error)
        debugger.stop()
        debugger.step()
    if model != "raising":
        values = {
            name: np.asarray(grad.asnumpy()).tolist() for (name, _), grad in zip(net.parameters_and_names(), grads)
        }
        print("RESULT" + json.dumps({"loss": float(loss.asnumpy()), "grads": values}))


main(*sys.argv[1:])

"""What a recorded step of MindSpore costs: the step with PrecisionDebugger over the same step without it, in one process.

usage: mindspore_steps.py NET LEVEL MODE [ROUNDS]     with the Python of the environment whose tool is measured
NET: conv, transformer. MODE: statistics, md5, tensor; training_forward (data_mode forward), forward (the same, and no step has a backward); idle
(constructed, never started, over the steps before that).

Recorded and bare steps take turns; each recorded one is held against the mean of its two neighbours, and the median of
these ratios is printed as JSON, by the clock on the wall and by the processor time of the process. Works with the earlier
tool, too, which needs a norm that a CPU has a kernel for; it is given one here.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["GLOG_v"] = "4"
import mindspore as ms
import mindspore.mint.nn.functional as F
import numpy as np
from mindspore import Tensor, mint, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
mint.norm = lambda x, *args, **kwargs: ops.sqrt(ops.ReduceSum()(ops.square(ops.cast(x, ms.float32))))


class Convolutions(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, has_bias=True)
        self.conv2 = nn.Conv2d(16, 32, 3, has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(32 * 8 * 8, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(ops.tanh(self.fc1(self.flatten(x))))


class Linear(nn.Cell):
    def __init__(self, inputs, outputs):
        super().__init__()
        values = np.random.default_rng(inputs + outputs).standard_normal((inputs, outputs)) * inputs**-0.5
        self.weight = ms.Parameter(Tensor(values.astype(np.float32)), name="weight")

    def construct(self, x):
        return mint.matmul(x, self.weight)


class Block(nn.Cell):
    def __init__(self, width=64):
        super().__init__()
        self.q, self.k, self.v, self.o = (Linear(width, width) for _ in range(4))
        self.up, self.down = Linear(width, 4 * width), Linear(4 * width, width)
        self.scale = width**-0.5

    def construct(self, x):
        weights = F.softmax(mint.mul(mint.matmul(self.q(x), mint.transpose(self.k(x), 1, 2)), self.scale), dim=-1)
        x = mint.add(x, self.o(mint.matmul(weights, self.v(x))))
        return mint.add(x, self.down(F.silu(self.up(x))))


class Transformer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([Block() for _ in range(4)])
        self.head = Linear(64, 64)

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


NETS = {"conv": (Convolutions, (16, 3, 32, 32)), "transformer": (Transformer, (8, 64, 64))}


def config_of(level, mode, directory):
    task = "tensor" if mode == "tensor" else "statistics"
    section = {"scope": [], "list": [], "data_mode": ["forward"] if mode.endswith("forward") else ["all"]}
    if task == "statistics":
        section["summary_mode"] = "md5" if mode == "md5" else "statistics"
    path = os.path.join(directory, "config.json")
    with open(path, "w") as file:
        json.dump({"task": task, "level": level, "dump_path": directory, "rank": [], "step": [], task: section}, file)
    return path


def main(net_name, level, mode, rounds="7"):
    from msprobe.mindspore import PrecisionDebugger

    make, shape = NETS[net_name]
    net = make()
    x = Tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    loss, params = (lambda x: (net(x) ** 2).mean()), net.trainable_params()
    grad = ms.value_and_grad(loss, None, params)

    def step():
        if mode == "forward":
            return loss(x).asnumpy()
        value, grads = grad(x)
        for part in grads:
            part.asnumpy()
        return value.asnumpy()

    def timed(run):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        return time.perf_counter() - wall, time.process_time() - cpu

    directory = tempfile.mkdtemp(prefix="msprobe_bench")
    for _ in range(3):
        step()
    early = [timed(step) for _ in range(3 * int(rounds))] if mode == "idle" else []
    debugger = PrecisionDebugger(config_path=config_of(level, mode, directory))

    def recorded():
        debugger.start(net)
        step()
        debugger.stop()
        debugger.step()

    if mode == "idle":
        late, bases = [timed(step) for _ in early], early
        ratios = [
            [statistics.median(after) / statistics.median(before) for after, before in zip(zip(*late), zip(*early))]
        ]
    else:
        recorded()
        ratios, bases = [], [timed(step)]
        for _ in range(int(rounds)):
            costs = timed(recorded)
            bases.append(timed(step))
            ratios.append([2 * cost / (before + after) for cost, before, after in zip(costs, *bases[-2:])])
    shutil.rmtree(directory)
    wall, cpu = (statistics.median(ratio[i] for ratio in ratios) for i in (0, 1))
    base = statistics.median(base[0] for base in bases) * 1000
    row = {"net": net_name, "level": level, "mode": mode, "wall": wall, "cpu": cpu, "base_ms": base}
    print(json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}))


main(*sys.argv[1:])

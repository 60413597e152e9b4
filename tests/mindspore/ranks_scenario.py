"""Two ranks of one tensor-parallel layer, started by msrun: communications are Primitives that know their group.

usage: msrun ... ranks_scenario.py DUMP_PATH [faulty rank]
"""

import os
import sys

os.environ["GLOG_v"] = "4"

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import create_group, get_rank, init
from msprobe.mindspore import PrecisionDebugger

WIDTH, INNER = 4, 6
GROUP = "tp-0-1"


class ParallelMlp(nn.Cell):
    def __init__(self, rank):
        super().__init__()
        random = np.random.default_rng(5)
        up, down = (random.standard_normal(shape).astype(np.float32) for shape in ((INNER, WIDTH), (WIDTH, INNER)))
        part = slice(rank * INNER // 2, (rank + 1) * INNER // 2)
        self.up = nn.Dense(WIDTH, INNER // 2, weight_init=Tensor(up[part]), has_bias=False)
        self.down = nn.Dense(INNER // 2, WIDTH, weight_init=Tensor(down[:, part].copy()), has_bias=False)
        self.reduce = ops.AllReduce(ops.ReduceOp.SUM, group=GROUP)
        self.gather = ops.AllGather()

    def construct(self, x):
        return self.gather(self.reduce(self.down(ops.relu(self.up(x)))))


def main(dump_path, faulty=None):
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    init()
    rank = get_rank()
    create_group(GROUP, [0, 1])
    net = ParallelMlp(rank)
    if faulty is not None and rank == int(faulty):
        net.down.weight.set_data(net.down.weight * 2)
    debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=dump_path)
    debugger.start(net)
    print("RESULT", net(Tensor(np.arange(2 * WIDTH, dtype=np.float32).reshape(2, WIDTH))).sum())
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(*sys.argv[1:])

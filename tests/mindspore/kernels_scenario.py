"""A step whose first infinity comes in the backward pass, and one whose first NaN comes in the forward, seen operator by
operator; and the same without the tool.

usage: kernels_scenario.py DUMP_PATH PLACE      PLACE: forward, backward
"""

import json
import os
import sys

os.environ["GLOG_v"] = "4"
import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self, place):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.place = place

    def construct(self, x):
        x = ops.relu(self.fc(x)) * 0
        x = mint.log(x - 1) if self.place == "forward" else mint.sqrt(x)  # NaN; 0 with a gradient of infinity
        return x.sum()


def bits(values):
    return [np.array(value.asnumpy()).tobytes().hex() for value in values]


def main(dump_path, place):
    ms.set_seed(1)
    net = Net(place)
    step = ms.value_and_grad(net, None, net.trainable_params())
    x = Tensor(np.ones((2, 4), np.float32))
    loss, grads = step(x)
    bare = bits([loss, *grads])
    config = {"task": "overflow_check", "level": "L2", "dump_path": dump_path, "overflow_check": {"overflow_nums": 1}}
    with open(f"{dump_path}.json", "w") as file:
        json.dump(config, file)
    debugger = PrecisionDebugger(config_path=f"{dump_path}.json")
    debugger.start(net)
    loss, grads = step(x)
    debugger.stop()
    debugger.step()
    later = mint.exp(x)  # seen by nobody
    print(json.dumps({"same": bits([loss, *grads]) == bare, "later": bits([later])}))


main(*sys.argv[1:])

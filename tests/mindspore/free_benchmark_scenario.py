"""A small training of MindSpore under task free_benchmark, or without it. Runs under mindstudio-probe 8.1, too.

usage: free_benchmark_scenario.py DIRECTORY SECTION [WHAT]

SECTION: that of config.json as JSON. With "dtype" in it the network computes in that dtype, with "bare" there is no tool. WHAT: "planted" for the
functions of planted.py, "awkward" for what must not be called again. Writes what was computed to DIRECTORY/trained.npz.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("GLOG_v", "4")
import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
if not hasattr(mint, "norm"):
    mint.norm = ops.norm


def numbers(*shape, scale=1.0):
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * scale).astype(np.float32)


@ms.jit
def compiled(x):
    return ops.tanh(x) * 2


class Net(nn.Cell):
    def __init__(self, dtype, awkward):
        super().__init__()
        self.first = ms.Parameter(Tensor(numbers(6, 8)), name="first")
        self.second = ms.Parameter(Tensor(numbers(8, 5, scale=0.3)), name="second")
        self.mean = ms.Parameter(Tensor(np.zeros(8, np.float32)), name="mean", requires_grad=False)
        self.variance = ms.Parameter(Tensor(np.ones(8, np.float32)), name="variance", requires_grad=False)
        self.dtype, self.awkward = dtype, awkward

    def construct(self, x):
        x = mint.matmul(x.astype(self.dtype), self.first.astype(self.dtype))
        if self.awkward:
            x = ops.dropout(x, p=0.3, training=True)
            x = ops.batch_norm(x, self.mean, self.variance, self.mean + 1, self.mean, training=True)
            x = x + ops.rand(8) * 0.1
            x.add_(0.5)
            x = compiled(x)
        x = ops.tanh(x) * 0.5
        x = mint.exp(x - mint.mean(x))
        parts = ops.split(x, 4, axis=1)
        x = mint.cat([parts[0] * parts[1], parts[1]], 1)
        x = ops.softmax(x, -1)
        return ops.matmul(x.astype(ms.float32), self.second)


def main():
    root, given = Path(sys.argv[1]), sys.argv[2]
    what = sys.argv[3] if len(sys.argv) > 3 else ""
    root.mkdir(parents=True, exist_ok=True)
    section = json.loads(given)
    bare = section.pop("bare", False)
    dtype = getattr(ms, section.pop("dtype", "float32"))
    debugger = None
    if not bare:
        from msprobe.mindspore import PrecisionDebugger

        settings = {"task": "free_benchmark", "dump_path": str(root), "rank": [], "step": [], "level": "L1"}
        if what == "planted":
            settings["custom_apis"] = {"planted": ["unstable", "stable", "unrepeatable", "failing"]}
        (root / "config.json").write_text(json.dumps({**settings, "free_benchmark": section}))
        debugger = PrecisionDebugger(config_path=str(root / "config.json"))
    ms.set_seed(3)
    net = Net(dtype, what == "awkward")
    parameters = list(net.trainable_params())
    optimizer = nn.SGD(parameters, 0.1)
    labels = Tensor(np.array([0, 1, 2, 3], np.int32))

    def loss_of(x):
        logits = net(x)
        if what == "planted":
            half = logits.astype(ms.float16)
            logits = logits + planted.unstable(half).astype(ms.float32) + planted.stable(half).astype(ms.float32)
            logits = logits + 0.0 * planted.unrepeatable(logits) + planted.failing(logits)
        return ops.cross_entropy(logits, labels)

    import planted

    losses = []
    for step in range(2):
        planted.begin_step()
        x = Tensor(numbers(4, 6, scale=1 + step))
        if debugger is not None:
            debugger.start(net)
        loss, gradients = ms.value_and_grad(loss_of, None, parameters)(x)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        optimizer(gradients)
        losses.append(loss.asnumpy())
    values = {parameter.name: parameter.asnumpy() for parameter in net.get_parameters()}
    np.savez(
        root / "trained.npz",
        losses=np.array(losses),
        generator=ms.get_rng_state().asnumpy(),
        drawn=ops.rand(4).asnumpy(),
        dropped=ops.dropout(ops.ones((16,)), p=0.5).asnumpy(),
        **values,
    )


if __name__ == "__main__":
    main()

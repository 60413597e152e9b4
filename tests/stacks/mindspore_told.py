"""What a process of MindSpore tells of its training, and kernels of a CPU for what has none there."""

import hashlib
import json
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

STEPS, ROWS = 3, 4  # as small.py has them, which imports torch


class Told:
    """What this process saw."""

    def __init__(self):
        self.inputs, self.losses, self.gradients = [], [], []

    def watch(self, cell, optimizer):
        """Means of the inputs of a Cell, and norms of the gradients that the optimizer is given."""
        cell.register_forward_pre_hook(lambda cell, inputs: self.saw(inputs[0]))
        names = [parameter.name for parameter in optimizer.parameters]
        optimizer.register_forward_pre_hook(lambda cell, inputs: self.stepped(names, inputs[0]))

    def saw(self, x):
        self.inputs.append(float(x.asnumpy().mean(dtype=np.float64)))

    def stepped(self, names, gradients):
        norms = [float(np.linalg.norm(gradient.asnumpy().astype(np.float64))) for gradient in gradients]
        self.gradients.append(dict(zip(names, norms)))

    def lost(self, loss):
        self.losses.append(float(loss).hex())

    def write(self, directory, network):
        sha = hashlib.sha256()
        for parameter in network.get_parameters():
            sha.update(f"{parameter.dtype}{parameter.shape}".encode() + parameter.asnumpy().tobytes())
        told = {**vars(self), "weights": sha.hexdigest()}
        Path(directory, "told0.json").write_text(json.dumps(told), encoding="utf-8")


def monitored(network, optimizer):
    """`--monitor`: the two lines of the guide."""
    if "--monitor" in sys.argv:
        from msprobe.mindspore import TrainerMon

        monitor = TrainerMon("monitor.json")
        monitor.set_monitor(network, optimizer, grad_acc_steps=1)


class Embedding(nn.Cell):
    def __init__(self, count, width, padding_idx=None, **_):
        super().__init__()
        numbers = np.random.RandomState(0).standard_normal((count, width)).astype(np.float32)
        self.weight = ms.Parameter(ms.Tensor(numbers * 0.02), name="weight")

    def construct(self, ids):
        return ops.gather(self.weight, ids, 0)


def _arange(start, end=None, step=1, *, dtype=None):
    first, last = (0, start) if end is None else (start, end)
    return ms.Tensor(np.arange(int(first), int(last), int(step)), dtype or ms.int64)


def _rms_norm(x, gamma, epsilon=1e-6):
    scale = ops.rsqrt(ops.mean(ops.square(x), -1, keep_dims=True) + epsilon)
    return x * scale * gamma, scale


# Of these a CPU has no kernel; before mindone is imported.
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
mint.arange = ops.arange = _arange
mint.nn.Embedding = Embedding
ops.rms_norm = _rms_norm

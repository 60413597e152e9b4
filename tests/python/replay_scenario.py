"""One small model, run in several ways: each run is a step of one dump of tensors.

usage: replay_scenario.py DIRECTORY      writes DIRECTORY/dump/stepN, N in the order of RUNS
"""

import contextlib
import json
import sys
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger
from torch import nn

RUNS = ("single", "bfloat16", "half", "wrong_bfloat16", "wrong_single", "coarse_bfloat16")


def wrong_gelu(x, *, approximate="none"):
    """A kernel with a wrong constant."""
    return x * torch.sigmoid(1.5 * x)


def coarse_addmm(bias, a, b, *, beta=1, alpha=1):
    """A kernel that keeps its sums in the dtype of its operands."""
    out = bias.expand(a.shape[0], b.shape[1]).clone()
    for k in range(0, a.shape[1], 2):
        out += a[:, k : k + 2] @ b[k : k + 2]
    return out


@contextlib.contextmanager
def kernel(name, function):
    """The kernel of an operator of the CPU is another one."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is replaced
        library.impl(name, function, "CPU")
    try:
        yield
    finally:
        library._destroy()


KERNELS = {"wrong": ("gelu", wrong_gelu), "coarse": ("addmm", coarse_addmm)}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = self.norm(x)
        weights = torch.softmax(h @ h.transpose(-1, -2) * 0.1, dim=-1)
        x = x + self.drop(weights @ h)
        y = self.down(F.gelu(self.up(x)))
        y += x
        return y


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        self.block = Block(width)
        self.head = nn.Linear(width, 50)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)))


def main(directory):
    config = {"task": "tensor", "dump_path": str(directory / "dump"), "rank": [], "step": [], "level": "mix"}
    (directory / "config.json").write_text(json.dumps({**config, "tensor": {"data_mode": ["all"]}}))
    debugger = PrecisionDebugger(str(directory / "config.json"))
    torch.manual_seed(0)
    state = Model().state_dict()
    tokens = torch.randint(0, 50, (2, 16))
    for name in RUNS:
        dtype = {"single": torch.float32, "half": torch.float16}.get(name.rpartition("_")[2], torch.bfloat16)
        model = Model()
        model.load_state_dict(state)
        model.to(dtype)
        torch.manual_seed(1)
        debugger.start(model)
        own = KERNELS.get(name.partition("_")[0])
        with kernel(*own) if own else contextlib.nullcontext():
            loss = F.cross_entropy(model(tokens).float().view(-1, 50), tokens.view(-1))
            loss.backward()
        debugger.stop()
        debugger.step()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

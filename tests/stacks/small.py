"""The small network that the stacks train, its data, and what a process tells of its training."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

STEPS, MICRO, ROWS, WIDTH = 3, 2, 4, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.drop = (
            nn.LayerNorm(32),
            nn.Linear(32, 64),
            nn.Linear(64, 32),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.blocks, self.head = (
            nn.Linear(WIDTH, 32),
            nn.ModuleList(Block() for _ in range(3)),
            nn.Linear(32, 4),
        )
        if "--fault" in sys.argv:
            self.blocks[1].norm.eps = 0.1

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def data(ranks=1):
    """Rows of all ranks for all steps."""
    rows = torch.randn(STEPS * MICRO * ROWS * ranks, WIDTH + 4, generator=torch.Generator().manual_seed(7))
    return torch.utils.data.TensorDataset(rows[:, :WIDTH], rows[:, WIDTH:])


class Told:
    """What this process saw, by NumPy alone: no function of torch is called for it."""

    def __init__(self):
        self.inputs, self.losses, self.gradients, self.starts = [], [], [], []

    def saw(self, x):
        """An input of the model: its mean is to be found in the dump."""
        self.inputs.append(float(x.detach().numpy().mean(dtype=np.float64)))

    def begins(self):
        """A step begins here; where nothing says so, each has MICRO calls of the model."""
        self.starts.append(len(self.inputs))

    def lost(self, loss):
        self.losses.append(float(loss.detach()).hex())

    def watch(self, named):
        """Notes norms of gradients whenever an optimizer steps that has one of these parameters; {name: parameter}."""

        def note(optimizer):
            stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
            norms = {n: norm(p.grad) for n, p in named.items() if id(p) in stepped and p.grad is not None}
            if norms:
                self.gradients.append(norms)

        def before(optimizer, args, kwargs):
            if hasattr(optimizer, "optimizers"):
                return None  # each of these steps, too
            closure = kwargs.get("closure")
            if closure is None:
                note(optimizer)
                return None

            def noted():  # the gradients that the optimizer uses are those that its closure has made and clipped
                loss = closure()
                note(optimizer)
                return loss

            return args, {**kwargs, "closure": noted}

        register_optimizer_step_pre_hook(before)

    def write(self, directory, rank, parameters):
        sha = hashlib.sha256()
        for p in parameters:
            sha.update(f"{p.dtype}{tuple(p.shape)}".encode() + own(p).float().contiguous().numpy().tobytes())
        told = {
            "inputs": self.inputs,
            "losses": self.losses,
            "gradients": self.gradients,
            "starts": self.starts or [*range(0, len(self.inputs), MICRO)],
            "weights": sha.hexdigest(),
        }
        Path(directory, f"told{rank}.json").write_text(json.dumps(told), encoding="utf-8")


def own(tensor):
    """What this process has of it."""
    return getattr(tensor, "_local_tensor", tensor).detach()


def norm(gradient):
    return float(np.linalg.norm(own(gradient).numpy().astype(np.float64)))

"""Trainings of one small model that differ in how they step; `step_kinds_scenario.py KIND LEVEL DIRECTORY`.

The model has norms and biases, so that groups of parameters exist; two steps, the optimizer inside of the recording.
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger


class Block(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.gate, self.up, self.down = (nn.Linear(16, 16) for _ in range(3))
        self.act = function()

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(self.act(self.gate(y)) * self.up(y))


def optimizer_of(kind, model):
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-2)
    if kind == "groups":
        matrices = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim < 2]
        return torch.optim.AdamW(
            [{"params": matrices}, {"params": others, "weight_decay": 0.0}], lr=1e-3, foreach=False
        )
    return torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)


def train(kind, level, folder):
    torch.manual_seed(0)
    model = nn.Sequential(
        *(Block(nn.GELU if kind == "other_function" else nn.SiLU) for _ in range(2)), nn.Linear(16, 4)
    )
    if kind == "frozen":
        model[1].up.weight.requires_grad_(False)
    if kind == "exchanged":
        for block in list(model)[:2]:
            block.gate.weight.data, block.up.weight.data = block.up.weight.data, block.gate.weight.data
    optimizer = optimizer_of(kind, model)
    debugger = PrecisionDebugger(task="statistics", level=level, dump_path=str(folder))
    for step in range(2):
        batch = torch.randn(12, 16, generator=torch.Generator().manual_seed(step))
        debugger.start(model=model)
        F.cross_entropy(model(batch), torch.arange(12) % 4).backward()
        if kind == "clipped_by_norm":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if kind == "clipped_by_value":
            torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)
        optimizer.step()
        if kind != "not_cleared":
            optimizer.zero_grad()
        debugger.stop()
        debugger.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(*sys.argv[1:])

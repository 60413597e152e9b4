"""Trainings with a fault behind another, between two steps or in the step; `two_faults_scenario.py KIND DIRECTORY`.

Two towers with optimizer groups of their own: what is wrong in one of them cannot come from the other. The first weight
belongs to the model itself, not to a module in it, and gradients are clipped.
"""

import sys

import torch
import torch.nn as nn
from msprobe.pytorch import PrecisionDebugger


class Towers(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 8))
        self.actor = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16, momentum=momentum), nn.Linear(16, 1))

    def forward(self, x, cut):
        x = x * self.scale
        value = self.critic(x)
        return self.actor(x), value, value.detach() if cut else value


def train(kind, folder, level="mix"):
    torch.manual_seed(0)
    model = Towers(0.9 if kind == "momentum" else 0.1)
    eps = 1e-5 if kind == "eps" else 1e-8
    optimizer = torch.optim.AdamW(
        [{"params": [model.scale, *model.actor.parameters()], "eps": eps}, {"params": model.critic.parameters()}],
        lr=2e-2 if kind == "rate" else 1e-2,
        weight_decay=0 if kind == "decay" else 0.1,
        foreach=False,
    )
    debugger = PrecisionDebugger(task="statistics", level=level, dump_path=str(folder))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for step in range(2):
        batch = torch.randn(12, 8, generator=torch.Generator().manual_seed(step))
        debugger.start(model=model)
        policy, value, base = model(batch, kind != "eps")
        error = (value - batch[:, :1]) ** 2
        loss = error.sum() if kind == "momentum" else error.mean()
        loss = loss + ((policy - base) ** 2).mean()
        (loss / 2 if kind == "halved" else loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        optimizer.step()
        if kind != "kept":
            optimizer.zero_grad()
        debugger.stop()
        debugger.step()
        if kind == "average" and step == 0:
            with torch.no_grad():
                for name, value in model.named_parameters():
                    value.lerp_(before[name], 0.5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(*sys.argv[1:])

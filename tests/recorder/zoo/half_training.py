"""A model in bfloat16 and one in float16, whose sums round at every addition."""

import torch
from torch import nn


def build():
    return nn.ModuleList(
        [nn.Sequential(nn.Linear(16, 600), nn.GELU(), nn.Linear(600, 2)).to(t) for t in (torch.bfloat16, torch.float16)]
    )


def step(model, i):
    losses = []
    for part, kind in zip(model, (torch.bfloat16, torch.float16)):
        x = torch.randn(16, 16, dtype=kind)
        loss = (part(x) + part(x * 2)).float().square().mean()
        loss.backward()
        losses.append(loss)
    return losses

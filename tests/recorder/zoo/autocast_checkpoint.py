"""Autocast around checkpointed blocks, with a scaled loss."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16)) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x


def build():
    return Net()


def step(model, i):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(8, 16)).square().mean()
    (loss * 128).backward()
    return loss

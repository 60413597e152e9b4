"""Gradients in bfloat16 through a residual stream that many modules read: sums round, so the order of sums shows."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


def build():
    return nn.Sequential(*[Block() for _ in range(3)]).to(torch.bfloat16)


def step(model, i):
    loss = model(torch.randn(8, 16, dtype=torch.bfloat16)).float().square().mean()
    loss.backward()
    return loss

"""A residual block whose shortcut, an Identity, is called before the block: its gradient is that of its own branch alone."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.shortcut = nn.Identity()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        y = self.shortcut(x)
        return self.l(x).tanh() + y * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.block = nn.Linear(8, 8), Block()

    def forward(self, x):
        return self.block(self.a(x))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

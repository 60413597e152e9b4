"""A module that returns a buffer, which its caller changes, and one that returns the same tensor at each call."""

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4, 8))

    def forward(self):
        return self.table


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.kept = nn.Linear(8, 8), None

    def forward(self, x):
        if self.kept is None:
            self.kept = self.l(x)
        return self.kept


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.cached = Table(), Cached()

    def forward(self, x):
        self.cached.kept = None
        table = self.table()
        table.mul_(1.5)
        return self.cached(x) * 2 + self.cached(x) * 3 + self.table()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

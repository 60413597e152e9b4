"""Modules that return what a module inside of them made, as it is, three levels deep, and one that picks from a tuple."""

import torch
from torch import nn


class Picks(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0]


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Sequential(nn.Linear(8, 8)))

    def forward(self, x):
        return self.inner(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.outer, self.picks = nn.Linear(8, 8), Outer(), Picks()

    def forward(self, x):
        h = self.outer(self.a(x))
        return self.picks(h) + h


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(2, 4, 8)).square().sum()
    loss.backward()
    return loss

"""A module that returns its argument as it came and whose result nobody uses, as probes and observers do: it has no backward pass."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.probe, self.b = nn.Linear(8, 8), nn.Identity(), nn.Linear(8, 2)

    def forward(self, x):
        h = self.a(x)
        self.probe(h)
        return self.b(h)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

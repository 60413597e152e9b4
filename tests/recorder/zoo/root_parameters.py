"""Parameters of the root itself, of modules that are not called, and a weight that a called module shares with one that is not."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.twin = nn.Linear(8, 8)
        self.twin.weight = self.a.weight

    def forward(self, x):
        h = self.a(x) * self.scale
        h = F.linear(h, self.b.weight, self.b.bias) + F.linear(x, self.twin.weight, self.twin.bias)
        return self.c(h)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

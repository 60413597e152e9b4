"""Two models that share a module and a parameter, given as a list; the shared ones have the name that comes first."""

from types import SimpleNamespace

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk, self.head = trunk, nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.trunk(x))


def build():
    trunk = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    return SimpleNamespace(model=[Net(trunk), Net(trunk)])


def step(state, i):
    x = torch.randn(4, 8)
    loss = sum(model(x).square().sum() for model in state.model)
    loss.backward()
    return loss

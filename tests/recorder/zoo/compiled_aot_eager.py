"""A part of a model compiled with backend aot_eager, whose backward pass is one node."""

import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.l(x)).relu() + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.part, self.b = nn.Linear(8, 8), torch.compile(Part(), backend="aot_eager"), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.part(self.a(x)))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

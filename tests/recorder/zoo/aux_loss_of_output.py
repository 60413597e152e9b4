"""A module whose auxiliary loss is made of its own output: the gradient of what it returns is that through its caller alone."""

import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        y = self.l(x).tanh()
        self.penalty = y.square().sum() * 3
        return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.b = Part(), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.part(x)).square().sum() + self.part.penalty


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8))
    loss.backward()
    return loss

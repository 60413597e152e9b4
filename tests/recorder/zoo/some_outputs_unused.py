"""A module of several outputs of which some are not used, and arguments that the backward pass does not reach."""

import torch
from torch import nn


class Three(nn.Module):
    def forward(self, x, y):
        return x * 2, x.detach() * y, (x + 1).tanh()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.three = nn.Linear(8, 8), nn.Linear(8, 8), Three()

    def forward(self, x):
        return self.three(self.a(x), self.b(x))[0].square().sum()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8))
    loss.backward()
    return loss

"""A module that returns two of its parameters, which stay leaves: their gradients arrive in .grad, and attributes stay on them."""

import torch
from torch import nn


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.zeros(4))

    def forward(self):
        return self.weight, self.bias


class One(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self):
        return self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.holder, self.one = Holder(), One()

    def forward(self, x):
        self.given = self.holder()
        return (x @ self.given[0] + self.given[1]) * self.one()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(3, 8)).square().sum()
    loss.backward()
    return [loss, [t.grad for t in model.given]]

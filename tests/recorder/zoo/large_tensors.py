"""Tensors of some hundred thousand elements with large and small values, means that cancel, and sums in other orders."""

import torch
from torch import nn


class Take(nn.Module):
    def forward(self, *tensors):
        return [t.sum() for t in tensors]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.take = Take()

    def forward(self, *tensors):
        return self.take(*tensors)


def build():
    return Net()


def step(model, i):
    x = torch.randn(300, 1000)
    cancels = torch.cat([x.flatten(), -x.flatten()])
    small = x * 1e-30
    wide = x * torch.logspace(-20, 20, 1000)
    return model(x, cancels, small, wide, x + 1e4, x.bfloat16(), x.half(), x.double(), torch.arange(300000))

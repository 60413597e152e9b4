"""torch.func.functionalize around a function with operators in place: the values of the tensors below."""

import torch
from torch import nn


def work(x):
    y = x * 2
    y.add_(1)
    y[0].mul_(3)
    return y.sum()


def build():
    return nn.Sequential(nn.Linear(4, 4))


def step(model, i):
    x = torch.randn(3, 4)
    found = torch.func.functionalize(work)(x)
    loss = model(x).sum()
    loss.backward()
    return [loss, found]

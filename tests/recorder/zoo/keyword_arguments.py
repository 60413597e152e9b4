"""Modules that are called with keywords only, with some of each, and with tensors in nested arguments."""

import torch
from torch import nn


class Only(nn.Module):
    def forward(self, *, query, scale=1.0, mask=None):
        return query * scale if mask is None else query * mask


class Mixed(nn.Module):
    def forward(self, x, pair, options=None, *more, last):
        return x * pair[0] + options["bias"] + sum(more) + last


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.only, self.mixed = nn.Linear(8, 8), Only(), Mixed()

    def forward(self, x):
        h = self.l(x)
        a = self.only(query=h, scale=2.0)
        b = self.only(query=a, mask=h > 0)
        return self.mixed(b, (h, 3), {"bias": a}, h, h * 2, last=x)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

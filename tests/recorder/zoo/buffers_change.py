"""Buffers that change in the forward pass: running statistics, a cache that is filled, and a counter."""

import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(6, 8))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.kept[self.calls % 6] = x.detach().mean(0)
        self.calls += 1
        return x + self.kept.sum(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.cache = nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8, momentum=0.3), Cache()

    def forward(self, x):
        return self.cache(self.norm(self.conv(x)).mean(-1))


def build():
    return Net()


def step(model, i):
    loss = sum(model(torch.randn(4, 3, 10)).square().sum() for _ in range(2))
    loss.backward()
    return loss

"""Modules that return views of their argument (Flatten, Unflatten), one of which is changed in place by its caller."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.flat, self.unflat, self.b = (
            nn.Linear(8, 8),
            nn.Flatten(),
            nn.Unflatten(1, (2, 12)),
            nn.Linear(12, 2),
        )

    def forward(self, x):
        h = self.a(x)
        y = self.flat(h)
        z = self.unflat(y) * 2
        w = self.flat(z)
        w += 1
        return self.b(self.unflat(w)) + h.sum()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 3, 8)).square().sum()
    loss.backward()
    return loss

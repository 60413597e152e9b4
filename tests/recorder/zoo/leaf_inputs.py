"""Inputs that are leaves and have gradients, also of a module that works on them in several ways."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Bilinear(8, 8, 2)

    def forward(self, x, y):
        return self.b(self.a(x), y)


def build():
    return Net()


def step(model, i):
    x, y = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8, requires_grad=True)
    loss = model(x, y).square().sum()
    loss.backward()
    return [loss, x.grad, y.grad]

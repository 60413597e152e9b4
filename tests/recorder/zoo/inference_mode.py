"""A forward pass in inference mode and one under no_grad, and parts of a training that need no gradient."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        with torch.no_grad():
            scale = self.a(x).abs().mean()
        return self.norm(self.drop(self.a(x))) * scale


def build():
    return Net()


def step(model, i):
    with torch.inference_mode():
        first = model(torch.randn(9, 16)).clone()
        first.add_(1)
    with torch.no_grad():
        second = model(torch.randn(9, 16))
        second.mul_(2)
    loss = model(torch.randn(9, 16)).sum()
    loss.backward()
    return [loss, second, first.sum()]

"""Level L0: modules alone."""

import torch
from torch import nn

LEVEL = "L0"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act, self.b = nn.Linear(16, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 2)

    def forward(self, x):
        return self.b(self.act(self.a(x)))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(10, 16)).square().sum()
    loss.backward()
    return loss

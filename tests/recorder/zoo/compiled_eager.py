"""Parts of a model compiled with backend eager: a module, a function, and a method that the model calls."""

import torch
from torch import nn


def scaled(x):
    return x.tanh() * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.part = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager")
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.part(torch.compile(scaled, backend="eager")(self.a(x))))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

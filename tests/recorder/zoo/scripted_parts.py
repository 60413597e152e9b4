"""A scripted module and a scripted function between modules of Python."""

import torch
from torch import nn


def scaled(x):
    return torch.tanh(x) * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.part = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
        self.scaled = torch.jit.script(scaled)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.scaled(self.part(self.a(x))))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

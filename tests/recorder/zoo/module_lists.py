"""Modules in a ModuleList and a ModuleDict, parameters in a ParameterList, a lazy module, and one that is exchanged between steps."""

import torch
from torch import nn

STEPS = 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)])
        self.named = nn.ModuleDict({"relu": nn.ReLU()})
        self.scales = nn.ParameterList([torch.ones(8), torch.ones(8) * 2])
        self.lazy = nn.LazyLinear(4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for scale in self.scales:
            x = x * scale
        return self.lazy(self.named["relu"](x))


def build():
    return Net()


def step(model, i):
    if i == 1:
        model.layers[1] = nn.GELU()
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

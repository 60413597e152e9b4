"""A named model with two micro steps a step and a function outside of it, recorded over three steps."""

import sys

import torch
from msprobe.pytorch import PrecisionDebugger
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return x


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)


torch.manual_seed(0)
model = Holder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="statistics", level="mix", step=[0, 1, 2])
for _ in range(3):
    debugger.start(model=model)
    for _ in range(2):
        torch.nn.functional.mse_loss(model(torch.randn(4, 8)), torch.ones(4, 8)).backward()
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()

"""Linear layers, an activation and SGD: nothing that is difficult."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 128)
        self.act = nn.GELU()
        self.b = nn.Linear(128, 4)
        self.optimizer = None

    def forward(self, x):
        return self.b(self.act(self.a(x)))


def build():
    return Net()


def step(model, i):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.randn(100, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

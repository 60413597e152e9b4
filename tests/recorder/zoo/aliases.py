"""Two names of one memory: a function writes through one and reads through the other."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)
        self.register_buffer("table", torch.zeros(6, 8))

    def forward(self, x):
        row = self.table[2]
        row.add_(x.detach().mean(0))
        whole = torch.mul(self.table, 2.0)
        flat = self.table.view(-1)
        flat[::3] = -1.0
        torch.add(self.table, 1.0)
        same = x.detach()
        same.sub_(1.0)
        return self.l(x) + whole.sum(0)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(5, 8)).sum()
    loss.backward()
    return loss

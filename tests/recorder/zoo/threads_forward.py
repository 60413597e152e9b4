"""Part of the forward pass runs in another thread; each thread has its own order of nodes."""

import threading

import torch
from torch import nn


class Side(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        return self.l(x).tanh() * x + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)
        self.side = Side()

    def forward(self, x):
        h = self.head(x)
        for _ in range(20):
            h = h + 0.01
        found = []
        thread = threading.Thread(target=lambda: found.append(self.side(h)))
        thread.start()
        thread.join()
        return found[0] + h


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(5, 8)).square().sum()
    loss.backward()
    return loss

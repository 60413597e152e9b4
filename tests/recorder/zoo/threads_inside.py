"""A module whose forward leaves half of its work to another thread, when the main thread has made many nodes before.

Numbers of nodes are counted by each thread for itself, so those of the worker are small.
"""

import threading

import torch
from torch import nn


class Side(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        found = []
        thread = threading.Thread(target=lambda: found.append((x * 3).tanh()))
        thread.start()
        thread.join()
        return self.l(x) + found[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.side = nn.Linear(8, 8), Side()

    def forward(self, x):
        h = self.head(x)
        for _ in range(50):
            h = h + 0.01
        return self.side(h) + h * 2


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(5, 8)).square().sum()
    loss.backward()
    return loss

"""Memory exchanged below autograd: .data changed, set_(), resize_() and a tensor that shares memory with NumPy."""

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 1024), nn.Linear(1024, 2)

    def forward(self, x):
        h = self.a(x)
        h.data.mul_(2)
        return self.b(h.tanh())


def build():
    return Net()


def step(model, i):
    array = np.linspace(-1, 1, 12000, dtype=np.float32)
    shared = torch.from_numpy(array)
    first = torch.sum(shared, 0)
    array[:6000] = 5
    second = torch.sum(shared, 0)
    other = torch.zeros(3)
    other.set_(shared[:9000])
    third = torch.add(other, 1)
    other.resize_(20, 30)
    fourth = torch.add(other, 1)
    loss = model(torch.randn(10, 16)).square().sum()
    loss.backward()
    return [loss, first, second, third.sum(), fourth.sum()]

"""A tensor hook that changes the gradient in place, as some do against the rules, and one that returns another.

The gradient of the module's output is what its last hook made of it. More elements than the fast path of small tensors takes.
"""

import torch
from torch import nn


def change(gradient):
    gradient.clamp_(-0.001, 0.001)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(16, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 2)

    def forward(self, x):
        h = self.a(x)
        h.register_hook(change)
        g = self.b(h)
        g.register_hook(lambda gradient: gradient * 2)
        g.register_hook(lambda gradient: gradient + 1)
        return self.c(g)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(10, 16)).square().mean()
    loss.backward()
    return loss

"""A custom Function changes its gradient in place through NumPy's memory, so autograd's version does not move, and returns it.

The gradient of the input is three times that of the output, before and after the same memory. More elements than the fast path
of small tensors takes.
"""

import torch
from torch import nn


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        gradient.numpy()[...] *= 3
        return gradient


class Scale(nn.Module):
    def forward(self, x):
        return Kernel.apply(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 1024)
        self.s = Scale()
        self.b = nn.Linear(1024, 2)

    def forward(self, x):
        return self.b(self.s(self.a(x)))


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(16, 16)).square().sum()
    loss.backward()
    return loss

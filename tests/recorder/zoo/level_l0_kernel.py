"""The custom Function with a kernel in backward and two outputs, at level L0, where no function is seen in between."""

import torch
from torch import nn

LEVEL = "L0"


class Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k):
        return q * 10, k * 10

    @staticmethod
    def backward(ctx, dq, dk):
        dq.mul_(10)
        dk.numpy()[...] *= 10
        return dq, dk


class Rope(nn.Module):
    def forward(self, q, k):
        return Rotate.apply(q, k)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.rope = nn.Linear(16, 1024), nn.Linear(16, 1024), Rope()

    def forward(self, x):
        q, k = self.rope(self.q(x), self.k(x))
        return (q.tanh() * k).sum()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(16, 16))
    loss.backward()
    return loss

"""A custom Function with two outputs whose backward overwrites both gradients by a kernel and returns them (Liger's RoPE)."""

import torch
from torch import nn


class Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k):
        return q * 10, k * 10

    @staticmethod
    def backward(ctx, dq, dk):
        dq, dk = dq.contiguous(), dk.contiguous()
        dq.numpy()[...] *= 10
        dk.numpy()[...] *= 10
        return dq, dk


class Rope(nn.Module):
    def forward(self, q, k):
        return Rotate.apply(q, k)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.rope = nn.Linear(8, 8), nn.Linear(8, 8), Rope()

    def forward(self, x):
        q, k = self.rope(self.q(x), self.k(x))
        return (q.tanh() * k).sum()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8))
    loss.backward()
    return loss

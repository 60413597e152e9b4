"""Column and row parallel layers written by hand, with all_reduce in the forward and in the backward of custom Functions."""

import torch
import torch.distributed as dist
from torch import nn

RANKS = 2


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Column(nn.Linear):
    def forward(self, x):
        return super().forward(Copy.apply(x))


class Row(nn.Linear):
    def forward(self, x):
        return Reduce.apply(super().forward(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.column, self.row = nn.Linear(8, 8), Column(8, 16), Row(16, 2)

    def forward(self, x):
        return self.row(self.column(self.first(x)).tanh())


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

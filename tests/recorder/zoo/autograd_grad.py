"""Gradients by torch.autograd.grad: of inputs and of parameters, where nothing is accumulated."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def build():
    return Net()


def step(model, i):
    x = torch.randn(4, 8, requires_grad=True)
    loss = model(x).square().sum()
    return [loss, torch.autograd.grad(loss, [x, *model.parameters()])]

"""A gradient penalty: the gradient of the input by autograd.grad with create_graph, and a backward pass through it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def build():
    return Net()


def step(model, i):
    x = torch.randn(4, 8, requires_grad=True)
    y = model(x).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    loss = y + (gradient.norm() - 1) ** 2
    loss.backward()
    return [loss, gradient, x.grad]

"""A module that asks for a gradient of its own input (requires_grad_ in forward), and one that runs under enable_grad in no_grad."""

import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 1)

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.l(x).tanh().sum()
            (force,) = torch.autograd.grad(energy, x, create_graph=True)
        return force


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy, self.b = Energy(), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.energy(x))


def build():
    return Net()


def step(model, i):
    with torch.no_grad():
        seen = model(torch.randn(3, 8))
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return [loss, seen]

"""An auxiliary loss made of a branch that does not lead to the module's output: its share belongs to the argument's gradient.

The recorder's view of the argument sees all that this call made of it; torch's own hook says the same.
"""

import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.router = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        self.l_aux = self.router(x).softmax(-1).square().sum()
        return self.l(x).tanh() * 0.1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.moe, self.b = nn.Linear(8, 8), Part(), nn.Linear(8, 2)

    def forward(self, x):
        h = self.a(x)
        return self.b(self.moe(h)) + h[:, :2]


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(12, 8)).square().mean() + 10 * model.moe.l_aux
    loss.backward()
    return loss

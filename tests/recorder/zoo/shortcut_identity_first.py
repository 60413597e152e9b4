"""An Identity at the very beginning of a model, on an input without gradient and on one that has it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.id, self.l, self.out = nn.Identity(), nn.Linear(8, 8), nn.Identity()

    def forward(self, x):
        return self.out(self.l(self.id(x)) + x)


def build():
    return Net()


def step(model, i):
    x = torch.randn(4, 8, requires_grad=i == 1)
    loss = model(x).square().sum()
    loss.backward()
    return [loss, x.grad]

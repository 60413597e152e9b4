"""A forward hook registered before start() changes the output: the module's caller gets three times what its forward made."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.a(x))


def build():
    model = Net()
    model.a.register_forward_hook(lambda module, args, output: output * 3)
    return model


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

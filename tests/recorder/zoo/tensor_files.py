"""Task tensor: the files hold the elements as they were, of arguments that are changed in place afterwards as well."""

import torch
from torch import nn

TASK = "tensor"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act, self.b = nn.Linear(16, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 2)

    def forward(self, x):
        h = self.act(self.a(x))
        h = h + 1
        h.mul_(2)
        h[:, ::3].half()
        return self.b(h)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(10, 16)).square().sum()
    loss.backward()
    return loss

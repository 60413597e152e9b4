"""A module that works in place on its argument, which is the output of another module.

The recorder's view of the argument leaves the graph when it is changed in place, so the case says the gradients itself: that
of the argument is where the activation let something through, by the definition of ReLU.
"""

import torch
import truth
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.relu, self.b = nn.Linear(16, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 2)

    def forward(self, x):
        return self.b(self.relu(self.a(x)))


def build():
    return Net()


def step(model, i):
    x = torch.randn(10, 16)
    y = model(x)
    loss = y.square().sum()
    loss.backward()
    with torch.no_grad():
        positive = torch.nn.functional.linear(x, model.a.weight, model.a.bias) > 0
        gradient = ((2 * y) @ model.b.weight) * positive
    truth.tell("Module.relu.ReLU.backward.0", "output", [gradient])
    return loss

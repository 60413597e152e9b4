"""Functions imported by name before the tool: the object is the same, so they are recorded."""

import torch
import truth
from torch import add, nn
from torch.nn.functional import gelu, silu


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        h = self.l(x)
        with torch.no_grad():
            a, b = gelu(h), silu(h)
            c = add(a, b)
        truth.tell("Functional.gelu.0.forward", "output", [a])
        truth.tell("Functional.silu.0.forward", "output", [b])
        truth.tell("Torch.add.0.forward", "output", [c])
        return h * c


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

"""Gradients clipped by a full backward pre hook of a module, and a multi-gradient hook that only looks.

torch's own hook shows what the pre hook made of the gradient as that of the output, so the case says it.
"""

import torch
import truth
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.c(self.b(self.a(x)).tanh())


def clip(module, got):
    clipped = tuple(g.clamp(-0.01, 0.01) for g in got)
    truth.tell("Module.b.Linear.backward.0", "input", list(clipped))
    return clipped


def build():
    model = Net()
    model.b.register_full_backward_pre_hook(clip)
    return model


def step(model, i):
    seen = []
    torch.autograd.graph.register_multi_grad_hook(list(model.parameters()), lambda gs: seen.append(len(gs)))
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return [loss, seen]

"""Nested tensors of both layouts through a module."""

import torch
from torch import nn


class Take(nn.Module):
    def forward(self, *tensors):
        return tensors[0]


def build():
    return nn.Sequential(Take(), nn.Linear(4, 4))


def step(model, i):
    parts = [torch.randn(3, 4), torch.randn(5, 4)]
    strided = torch.nested.nested_tensor(parts)
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    model[0](strided, jagged)
    y = model[1](jagged)
    loss = y.values().sum()
    loss.backward()
    return loss

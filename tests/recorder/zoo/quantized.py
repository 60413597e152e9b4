"""Quantised tensors, whose values are those that they represent."""

import torch
from torch import nn


class Take(nn.Module):
    def forward(self, *tensors):
        return [t.dequantize() for t in tensors]


def build():
    return nn.Sequential(Take())


def step(model, i):
    x = torch.randn(100, 90)
    a = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    b = torch.quantize_per_channel(x, torch.full((100,), 0.05), torch.zeros(100, dtype=torch.long), 0, torch.qint8)
    return [t.sum() for t in model[0](a, b)]

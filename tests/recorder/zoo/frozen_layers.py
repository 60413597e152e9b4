"""Layers whose parameters need no gradient between others that train; in the second step it is the other way round."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2))


def step(model, i):
    for n, layer in enumerate(model):
        layer.requires_grad_((n + i) % 2 == 0)
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

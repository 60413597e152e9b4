"""Two backward passes through one graph (retain_graph): both are there."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model, i):
    y = model(torch.randn(4, 8))
    y.sum().backward(retain_graph=True)
    y.square().sum().backward()
    return y

"""Dropout and Hardtanh in place, one behind the other: each module saw its argument before it changed it.

The gradient of an argument that was changed in place is beyond the recorder; those of the outputs are compared.
"""

import torch
from torch import nn


def build():
    layers = [nn.Linear(16, 1024), nn.Dropout(0.3, inplace=True)]
    return nn.Sequential(*layers, nn.Hardtanh(-2, 2, inplace=True), nn.Linear(1024, 2))


def step(model, i):
    loss = model(torch.randn(10, 16)).square().sum()
    loss.backward()
    return loss

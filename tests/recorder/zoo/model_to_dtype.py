"""The model's dtype changes between steps, there and back: gradients of parameters go on."""

import torch
from torch import nn

STEPS = 4


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model, i):
    kind = next(model.parameters()).dtype
    loss = model(torch.randn(4, 8, dtype=kind)).square().sum()
    loss.backward()
    model.zero_grad()
    model.to((torch.float64, torch.float32, torch.bfloat16, torch.float32)[i])
    return loss

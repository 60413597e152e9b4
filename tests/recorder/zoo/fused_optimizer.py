"""Adam and SGD with fused kernels."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(16, 600), nn.Tanh(), nn.Linear(600, 3))
    adam = torch.optim.AdamW(model[0].parameters(), lr=0.01, fused=True)
    sgd = torch.optim.SGD(model[2].parameters(), lr=0.01, momentum=0.9, fused=True)
    return SimpleNamespace(model=model, optimizers=(adam, sgd))


def step(state, i):
    loss = state.model(torch.randn(8, 16)).square().mean()
    loss.backward()
    for optimizer in state.optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return loss

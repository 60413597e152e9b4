"""Three micro batches add up in .grad before the optimizer steps; each accumulation has its number."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    return SimpleNamespace(model=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.1))


def step(state, i):
    losses = []
    for _ in range(3):
        loss = state.model(torch.randn(4, 8)).square().sum() / 3
        loss.backward()
        losses.append(loss)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return losses

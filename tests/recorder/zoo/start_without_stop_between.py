"""Four optimizer steps in one recorded step, with numbers that go on, and zero_grad(set_to_none=False) between them."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    return SimpleNamespace(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def step(state, i):
    losses = []
    for _ in range(4):
        loss = state.model(torch.randn(4, 8)).square().mean()
        loss.backward()
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=False)
        losses.append(loss)
    return losses

"""LBFGS calls a closure several times in a step: forward and backward passes inside of the optimizer."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    return SimpleNamespace(model=model, optimizer=torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4))


def step(state, i):
    x = torch.randn(6, 4)

    def closure():
        state.optimizer.zero_grad()
        loss = state.model(x).square().sum()
        loss.backward()
        return loss

    return state.optimizer.step(closure)

"""AdamW with foreach, clipped gradients: functions of many tensors, in place."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(16, 600), nn.Tanh(), nn.Linear(600, 3))
    return SimpleNamespace(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True))


def step(state, i):
    loss = state.model(torch.randn(8, 16)).square().mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(state.model.parameters(), 0.1, foreach=True)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return [loss, norm]

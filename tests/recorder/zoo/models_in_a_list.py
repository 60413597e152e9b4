"""Two models given as a list, one of which reads what the other made."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    first, second = nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 2), nn.Identity())
    return SimpleNamespace(model=[first, second])


def step(state, i):
    first, second = state.model
    fake = first(torch.randn(4, 8))
    loss = second(fake.detach()).sum() + second(fake).square().sum()
    loss.backward()
    return loss

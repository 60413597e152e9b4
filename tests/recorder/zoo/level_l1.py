"""Level L1: functions alone, with more than 1000 in a step, so that files are flushed in between."""

import torch
from torch import nn

LEVEL = "L1"


def build():
    return nn.Sequential(nn.Linear(16, 600), nn.Linear(600, 2))


def step(model, i):
    loss = model(torch.randn(15, 16)).square().sum()
    for k in range(600):
        loss = loss * 1.001 + k
    loss.backward()
    return loss

"""torch.save and pickle of the model and of its output, within a recorded step; the copy that is loaded trains on."""

import io
import pickle

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model, i):
    y = model(torch.randn(4, 8))
    kept = io.BytesIO()
    torch.save({"model": model.state_dict(), "y": y.detach()}, kept)
    other = pickle.loads(pickle.dumps(model))
    loss = y.square().sum() + other(torch.ones(4, 8)).sum()
    loss.backward()
    return [loss, [p.grad for p in other.parameters()]]

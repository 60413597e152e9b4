"""weight_norm and spectral_norm as parametrizations, and the earlier ones that work by hooks."""

import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations

warnings.filterwarnings("ignore")


def build():
    return nn.Sequential(
        parametrizations.weight_norm(nn.Linear(8, 8)),
        parametrizations.spectral_norm(nn.Linear(8, 8)),
        nn.utils.weight_norm(nn.Linear(8, 8)),
        nn.utils.spectral_norm(nn.Linear(8, 2)),
    )


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

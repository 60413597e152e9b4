"""Functions that draw: the generator is where it would be without the tool, also generators of one's own."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.4), nn.RReLU(), nn.AlphaDropout(0.2))


def step(model, i):
    own = torch.Generator().manual_seed(5)
    noise = torch.zeros(4, 8).normal_(generator=own)
    loss = (model(torch.randn(4, 8)) + noise).square().sum()
    loss.backward()
    drawn = [torch.bernoulli(torch.full((9000,), 0.3)), torch.multinomial(torch.ones(9), 4), torch.rand(3)]
    return [loss, drawn, own.get_state()]

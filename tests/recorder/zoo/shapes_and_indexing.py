"""Functions of shape, indexing, sorting and scattering, on views with odd strides."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(12, 12))


def step(model, i):
    y = model(torch.randn(6, 12))
    parts = y.view(6, 3, 4).permute(2, 0, 1).flip(0).split([1, 3])
    a = torch.cat([p.transpose(1, 2) for p in parts]).unfold(0, 2, 1).sum()
    values, indices = y.sort(-1, descending=True)
    b = torch.gather(y, 1, indices[:, :3]).prod()
    c = torch.zeros(6, 12).scatter_add(1, indices, values).roll(2, 1).cumsum(1).mean()
    d = torch.where(y > 0, y, y * 0.1).topk(2).values.sum()
    e = torch.einsum("ij,kj->ik", y, y).tril().trace() + torch.stack([y, y]).var(0).sum()
    f = y.expand(2, 6, 12)[..., ::5].repeat_interleave(2, 0).masked_select(torch.ones(1, dtype=torch.bool)).norm()
    loss = a + b + c + d + e + f
    loss.backward()
    return loss

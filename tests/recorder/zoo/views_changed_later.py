"""Views of a tensor that are changed after functions and modules saw it: what was seen counts, not what became of it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 512)
        self.seen = nn.Identity()

    def forward(self, x):
        y = self.a(x)
        with torch.no_grad():
            kept = y.detach()
            top = kept[:3]
            a = torch.sum(kept, 0)
            top.fill_(7.0)
            b = torch.sum(kept, 0)
            kept.t()[:2].zero_()
            c = torch.sum(kept.view(-1, 4), 0)
            flipped = kept.flip(0).expand(2, 20, 512)
            d = torch.add(flipped, 1.0).sum()
        return y.sum() + a.sum() + b.sum() + c.sum() + d


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(20, 32))
    loss.backward()
    return loss

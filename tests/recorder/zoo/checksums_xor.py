"""summary_mode xor: all 64-bit words of the elements of every tensor, whose number of bytes is no multiple of 8 in some."""

import torch
from torch import nn

SUMMARY = "xor"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 1023), nn.Linear(1023, 3)

    def forward(self, x):
        h = self.a(x)
        h = h.half().t().contiguous().t().float() * 2
        h[:, ::7].bool()
        h.mul_(0.5).clamp_(min=-1)
        return self.b(h)


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(9, 16)).square().sum()
    loss.backward()
    torch.arange(5, dtype=torch.int8).add(1)
    return loss

"""MultiheadAttention with one tensor as query, key and value: each place has a gradient of its own.

torch's full backward hook tells the three apart; the recorder's views do so too, by which attention takes the path of three
different tensors, with the same values up to rounding.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        h = self.a(x)
        return self.mha(h, h, h)[0]


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(2, 5, 8)).square().sum()
    loss.backward()
    return loss

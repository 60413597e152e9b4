"""A residual block whose shortcut, an empty Sequential, is called after the block, as in a ResNet; and dropout in eval mode."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.shortcut = nn.Sequential()
        self.drop = nn.Dropout(0.5)
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        y = self.l(x).tanh()
        return y + self.shortcut(x) * 2 + self.drop(x) * 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.block = nn.Linear(8, 8), Block()

    def forward(self, x):
        return self.block(self.a(x))


def build():
    return Net().eval()


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

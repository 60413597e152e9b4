"""Convolutions, batch norms, ReLU in place, and the sum in place of a ResNet's block.

`out += shortcut` changes a module's output in place: the gradient of that output is the one of its value before.
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inside, out, 1, stride), nn.BatchNorm2d(out)) if stride > 1 else None

    def forward(self, x):
        identity = x if self.down is None else self.down(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(4, 4, 1), Block(4, 8, 2)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(self.pool(self.two(self.one(x))).flatten(1))


def build():
    return Net()


def step(model, i):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4, 16, 16)), torch.arange(8) % 3)
    loss.backward()
    return loss

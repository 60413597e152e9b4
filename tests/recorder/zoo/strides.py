"""channels_last, overlapping, expanded and zero strides, of more elements than the fast path takes."""

import torch
from torch import nn


class Take(nn.Module):
    def forward(self, *tensors):
        return tensors[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.take = nn.Conv2d(3, 8, 3, padding=1), Take()

    def forward(self, x):
        return self.take(self.conv(x))


def build():
    return Net().to(memory_format=torch.channels_last)


def step(model, i):
    x = torch.randn(2, 3, 40, 40).to(memory_format=torch.channels_last)
    loss = model(x).square().mean()
    loss.backward()
    base = torch.randn(200, 100)
    model.take(
        base[::3, 1::2],
        base.t()[5:],
        base[:1].expand(90, 100),
        base.as_strided((99, 200), (100, 1)),
        base.flatten()[7:9000],
        torch.tensor(2.0).expand(100, 100),
        base.unfold(0, 3, 2),
        base.flip(1)[:, ::7],
        torch.randn(600, 500)[:, 3:],
    )
    return loss

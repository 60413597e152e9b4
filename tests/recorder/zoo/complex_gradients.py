"""A training in complex numbers: gradients of modules and parameters are conjugated as autograd has it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8, dtype=torch.complex64), nn.Linear(8, 4, dtype=torch.complex128)

    def forward(self, x):
        h = self.a(x)
        return self.b((h * h.conj()).to(torch.complex128) + 1j).abs().sum() + torch.fft.fft(h).real.square().mean()


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8, dtype=torch.complex64))
    loss.backward()
    return loss

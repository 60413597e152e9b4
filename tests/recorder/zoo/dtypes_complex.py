"""complex128, complex64 and complex32, conjugated and negated views."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8, dtype=torch.complex64)

    def forward(self, x):
        y = self.l(x).conj() * 2.0
        z = torch.view_as_real(y.imag.neg() + 0j)
        return y.abs().sum() + z.sum()


class Take(nn.Module):
    def forward(self, *tensors):
        return tensors


def build():
    return nn.Sequential(Net(), Take())


def step(model, i):
    x = torch.randn(100, 100, dtype=torch.complex64)
    model[1](x, x.conj(), x.conj().imag, x.to(torch.complex128), x.to(torch.complex32), x.real, x[::2].t())
    loss = model[0](x[:, :8])
    loss.backward()
    return loss

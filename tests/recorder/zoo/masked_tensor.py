"""A MaskedTensor as a module's argument: the elements that the mask keeps count."""

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")


class Take(nn.Module):
    def forward(self, masked):
        return masked.get_data().sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.take = Take()

    def forward(self, masked):
        return self.take(masked)


def build():
    return Net()


def step(model, i):
    data = torch.randn(100, 100)
    return model(torch.masked.masked_tensor(data, data > 0.5))

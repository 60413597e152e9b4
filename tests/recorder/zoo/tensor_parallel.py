"""Tensor parallelism by DTensor: a column wise and a row wise layer, whose output is reduced by a hook."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANKS = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.c(self.b(self.a(x).tanh()))


def build():
    return parallelize_module(Net(), init_device_mesh("cpu", (2,)), {"a": ColwiseParallel(), "b": RowwiseParallel()})


def step(model, i):
    torch.manual_seed(i)
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

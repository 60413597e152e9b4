"""DistributedDataParallel: modules as without it; gradients of parameters are those of the rank itself, before the reduction."""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def build():
    model = DistributedDataParallel(Net())
    return SimpleNamespace(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def step(state, i):
    x = torch.randn(4, 8) + dist.get_rank()
    loss = state.model(x).square().sum()
    loss.backward()
    state.optimizer.step()
    state.optimizer.zero_grad()
    return loss

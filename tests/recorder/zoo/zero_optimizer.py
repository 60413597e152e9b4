"""ZeroRedundancyOptimizer with DDP: the broadcasts of its parameters have entries."""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
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
    return SimpleNamespace(model=model, optimizer=ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1))


def step(state, i):
    loss = state.model(torch.randn(4, 8) + dist.get_rank()).square().sum()
    loss.backward()
    state.optimizer.step()
    state.optimizer.zero_grad()
    return loss

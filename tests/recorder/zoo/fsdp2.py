"""FSDP2 (fully_shard): parameters as gathered, gradients before the reduction, and the collectives that it calls."""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def build():
    torch.use_deterministic_algorithms(True)  # new memory is filled, so that what nobody wrote is the same everywhere
    model, mesh = Net(), init_device_mesh("cpu", (2,))
    fully_shard(model.a, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return SimpleNamespace(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def step(state, i):
    x = torch.randn(4, 8) + dist.get_rank()
    loss = state.model(x).square().sum()
    loss.backward()
    state.optimizer.step()
    return loss

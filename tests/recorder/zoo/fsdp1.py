"""FSDP1: names with _fsdp_wrapped_module, gradients of parameters null because they are views of a flat one."""

import torch
import torch.distributed as dist
import truth
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

RANKS = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def build():
    torch.use_deterministic_algorithms(True)
    return FullyShardedDataParallel(Net(), device_id=torch.device("cpu"))


def step(model, i):
    truth.unknown("Torch.chunk.0.forward", "entry", "FSDP splits memory that nobody has written yet")
    truth.unknown(
        "Module._fsdp_wrapped_module.Net.parameters_grad.0", "entry", "docs/en/capture/parallel.md: null with FSDP1"
    )
    loss = model(torch.randn(4, 8) + dist.get_rank()).square().sum()
    loss.backward()
    return loss

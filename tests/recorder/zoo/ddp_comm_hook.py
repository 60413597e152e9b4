"""DDP with a communication hook in Python and no_sync: its collective has an entry, the gradients before it are those seen."""

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


def halved(state, bucket):
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda f: f.value()[0] / 2)


def build():
    model = DistributedDataParallel(Net())
    model.register_comm_hook(None, halved)
    return model


def step(model, i):
    with model.no_sync():
        first = model(torch.randn(4, 8) + dist.get_rank()).square().sum()
        first.backward()
    second = model(torch.randn(4, 8) - dist.get_rank()).square().sum()
    second.backward()
    return [first, second]

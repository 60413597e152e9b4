"""Asynchronous collectives that are waited for by wait(), in the order of the calls and in another; what arrived is changed afterwards."""

import torch
import torch.distributed as dist
from torch import nn

RANKS = 2


def build():
    return nn.Sequential(nn.Linear(8, 8))


def step(model, i):
    rank = dist.get_rank()
    x = torch.randn(1200, 8) + rank
    loss = model(x).sum()
    loss.backward()
    total, other = x.clone(), x * 3
    first = dist.all_reduce(total, async_op=True)
    second = dist.all_reduce(other, async_op=True)
    second.wait()
    other.zero_()
    first.wait()
    total.mul_(100)
    gathered, own, turned = torch.zeros(2400, 8), torch.zeros(600, 8), torch.zeros(1200, 8)
    works = [
        dist.all_gather_into_tensor(gathered, x, async_op=True),
        dist.reduce_scatter_tensor(own, x * 2, async_op=True),
        dist.all_to_all_single(turned, x, async_op=True),
        dist.broadcast(total, src=1, async_op=True),
    ]
    parts = [torch.zeros(1200, 8) for _ in range(2)]
    works.append(dist.all_gather(parts, x, async_op=True))
    for work in works:
        work.wait()
    return [loss, total, gathered, own, turned, parts]

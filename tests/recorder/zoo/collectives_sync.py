"""Synchronous collectives of every kind that gloo has: arguments before, all arguments after the call."""

import torch
import torch.distributed as dist
from torch import nn

RANKS = 2


def build():
    return nn.Sequential(nn.Linear(8, 8))


def step(model, i):
    rank = dist.get_rank()
    x = torch.randn(6, 8) + rank
    loss = model(x).sum()
    loss.backward()
    total = x.clone()
    dist.all_reduce(total)
    dist.all_reduce(total, op=dist.ReduceOp.MAX)
    dist.broadcast(total, src=1)
    dist.reduce(total, dst=0)
    parts = [torch.zeros(6, 8) for _ in range(2)]
    dist.all_gather(parts, x)
    gathered = torch.zeros(12, 8)
    dist.all_gather_into_tensor(gathered, x)
    own = torch.zeros(3, 8)
    dist.reduce_scatter_tensor(own, x * 2)
    dist.scatter(own, [x[:3].contiguous(), x[3:].contiguous()] if rank == 0 else None, src=0)
    both = [torch.zeros(3, 8), torch.zeros(3, 8)] if rank == 0 else None
    dist.gather(own, both, dst=0)
    turned = torch.zeros(6, 8)
    dist.all_to_all_single(turned, x)
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(turned, 0)
    return [loss, total, parts, gathered, own, turned]

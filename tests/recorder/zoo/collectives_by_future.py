"""Asynchronous collectives that are waited for by get_future().wait() and by polling is_completed(): the case says what arrived.

The recorder sees a wait() alone. After the wait the buffer holds the sum, which the case reads and then overwrites.
"""

import time

import torch
import torch.distributed as dist
import truth
from torch import nn

RANKS = 2


def build():
    return nn.Sequential(nn.Linear(8, 8))


def step(model, i):
    x = torch.randn(6, 8) + dist.get_rank()
    loss = model(x).sum()
    loss.backward()
    total = x.clone()
    dist.all_reduce(total, async_op=True).get_future().wait()
    truth.tell("Distributed.all_reduce.0.forward", "output", [total, True])
    total.zero_()
    other = x * 2
    work = dist.all_reduce(other, async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    truth.tell("Distributed.all_reduce.1.forward", "output", [other, True])
    other.zero_()
    return [loss, total, other]

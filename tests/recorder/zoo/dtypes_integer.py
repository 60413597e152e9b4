"""Integers of every width up to the ends of their range, and bool."""

import torch
from torch import nn

INTEGERS = "uint8 int8 int16 int32 int64 uint16 uint32 uint64".split()


class Take(nn.Module):
    def forward(self, *tensors):
        return tensors


def build():
    return nn.ModuleList([Take()])


def step(model, i):
    found = []
    for name in INTEGERS:
        kind = getattr(torch, name)
        ends = torch.iinfo(kind)
        values = [ends.max - 3, ends.min + 2, 7, 0]
        found.append(torch.tensor(values, dtype=torch.uint64 if ends.max > 2**63 else torch.int64).to(kind))
        found.append(torch.arange(10000).remainder(100).to(kind))
    found += [torch.tensor([True, False]), torch.ones(9000, dtype=torch.bool), torch.tensor(True), torch.tensor(-5)]
    model[0](*found)
    torch.bitwise_and(found[-1], 3)
    return found

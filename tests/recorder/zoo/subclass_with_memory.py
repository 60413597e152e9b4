"""A subclass of Tensor that has memory, as inputs and parameters; nobody runs its __torch_function__ to read it."""

import torch
from torch import nn

CALLS = []


class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        CALLS.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh())


def step(model, i):
    x = torch.randn(4, 8).as_subclass(Marked)
    loss = model(x).sum()
    loss.backward()
    return [loss.as_subclass(torch.Tensor)]

"""A wrapper subclass without memory of its own, with all operators through __torch_dispatch__: no figures, the same bits."""

import torch
from torch import nn
from torch.utils._pytree import tree_map


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())
        made.inner = inner
        return made

    def __repr__(self):
        return "Wrapper"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def bare(value):
            return value.inner if isinstance(value, cls) else value

        done = func(*tree_map(bare, args), **tree_map(bare, kwargs or {}))
        return tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v, done)


class Take(nn.Module):
    def forward(self, x):
        return x * 2 + 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.take = Take()

    def forward(self, x):
        return self.take(x)


def build():
    return Net()


def step(model, i):
    with torch.no_grad():
        return model(Wrapper(torch.randn(4, 4))).inner

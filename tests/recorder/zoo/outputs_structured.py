"""Outputs in a dict, a dataclass, a namedtuple, an OrderedDict and nested lists, and one that is no tensor."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import torch
from torch import nn

Pair = namedtuple("Pair", "first second")


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor = None
    name: str = "out"


class AsDict(nn.Module):
    def forward(self, x):
        return {"a": x * 2, "b": [x + 1, None, 3], "c": OrderedDict(d=x.tanh())}


class AsDataclass(nn.Module):
    def forward(self, x):
        return Output(x * 3, x.square().mean())


class AsNamedtuple(nn.Module):
    def forward(self, x):
        return Pair(x * 4, x.max(-1))


class AsText(nn.Module):
    def forward(self, x):
        return "text", 3, 2.5, True, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)
        self.one, self.two, self.three, self.four = AsDict(), AsDataclass(), AsNamedtuple(), AsText()

    def forward(self, x):
        x = self.l(x)
        one, two, three = self.one(x), self.two(x), self.three(x)
        self.four(x)
        return (
            one["a"].sum()
            + one["b"][0].sum() * 2
            + one["c"]["d"].sum()
            + two.logits.sum() * 3
            + two.loss
            + three.first.sum() * 4
        )


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(4, 8))
    loss.backward()
    return loss

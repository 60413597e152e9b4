"""A forward hook that is called although the forward raised (always_call), hooks with keywords, and one that removes itself."""

import torch
from torch import nn

CALLS = []


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x, *, scale=1.0, fails=False):
        if fails:
            raise ValueError
        return self.l(x) * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        try:
            self.part(x, fails=True)
        except ValueError:
            pass
        return self.part(x, scale=1.0)


def build():
    model = Net()
    model.part.register_forward_hook(lambda module, args, output: CALLS.append(output is None), always_call=True)
    model.part.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs, "scale": 2.0}), with_kwargs=True)
    model.part.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["scale"], with_kwargs=True)

    def once(module, args, output):
        handle.remove()
        return output + 1

    handle = model.part.l.register_forward_hook(once)
    return model


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return [loss, list(CALLS)]

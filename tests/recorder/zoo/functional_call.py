"""torch.func.functional_call with the module's own parameters, and with other tensors in their place.

With other tensors the gradients go to them: there are none of the module's own parameters from that call.
"""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model, i):
    x = torch.randn(4, 8)
    own = dict(model.named_parameters())
    loss = torch.func.functional_call(model, own, (x,)).square().sum()
    doubled = {name: p * 2 for name, p in own.items()}
    other = torch.func.functional_call(model, doubled, (x,)).sum()
    (loss + other).backward()
    return [loss, other]

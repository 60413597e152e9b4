"""Each parameter's optimizer steps and drops the gradient in a post accumulate hook: the gradient seen is that before."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    set_to_none = {p: n % 2 == 0 for n, p in enumerate(model.parameters())}

    def hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad(set_to_none=set_to_none[parameter])

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    return SimpleNamespace(model=model, optimizers=optimizers)


def step(state, i):
    loss = state.model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

"""Gradients are added to main_grad and dropped by a hook of the accumulator, as in Megatron."""

from types import SimpleNamespace

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    kept = []
    for p in model.parameters():
        p.main_grad = torch.zeros_like(p)
        accumulator = p.expand_as(p).grad_fn.next_functions[0][0]

        def hook(*_, p=p):
            p.main_grad.add_(p.grad)
            p.grad = None

        accumulator.register_hook(hook)
        kept.append(accumulator)
    return SimpleNamespace(model=model, kept=kept)


def step(state, i):
    for _ in range(2):
        loss = state.model(torch.randn(4, 8)).square().sum()
        loss.backward()
    return [loss, [p.main_grad for p in state.model.parameters()]]

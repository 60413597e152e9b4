"""Gradients kept in main_grad by post accumulate hooks that were registered before start(), with two micro batches.

Each hook adds .grad to main_grad and takes it away, so the gradient seen is that of the micro batch alone.
"""

import torch
from torch import nn


def keep(parameter):
    parameter.main_grad.add_(parameter.grad)
    parameter.grad = None


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    for p in model.parameters():
        p.main_grad = torch.zeros_like(p)
        p.register_post_accumulate_grad_hook(keep)
    return model


def step(model, i):
    for _ in range(2):
        model(torch.randn(4, 8)).square().sum().backward()
    return [p.main_grad for p in model.parameters()]

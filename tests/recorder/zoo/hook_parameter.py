"""Hooks of parameters: one scales the gradient before it is accumulated, one clips what was accumulated."""

import torch
from torch import nn


def clip(parameter):
    parameter.grad.clamp_(-0.01, 0.01)


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    model[0].weight.register_hook(lambda g: g * 10)
    model[1].weight.register_post_accumulate_grad_hook(clip)
    return model


def step(model, i):
    loss = model(torch.randn(4, 8)).square().sum()
    loss.backward()
    return loss

"""torch.func: per sample gradients by vmap and grad, and a Jacobian, of a functional loss; the model trains beside it."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))


def step(model, i):
    x = torch.randn(3, 4)
    weights = {n: p.detach() for n, p in model.named_parameters()}

    def loss_of(weights, sample):
        return torch.func.functional_call(model, weights, (sample,)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(weights, x)
    jacobian = torch.func.jacrev(torch.tanh)(x)
    loss = model(x).square().sum()
    loss.backward()
    return [loss, each, jacobian]

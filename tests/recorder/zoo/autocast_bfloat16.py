"""A model under autocast: products in bfloat16, sums in float32, gradients of parameters in float32."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 300)
        self.norm = nn.LayerNorm(300)
        self.b = nn.Linear(300, 4)

    def forward(self, x):
        return self.b(self.norm(torch.nn.functional.gelu(self.a(x))))


def build():
    return Net()


def step(model, i):
    with torch.autocast("cpu", torch.bfloat16):
        y = model(torch.randn(40, 32))
        loss = nn.functional.mse_loss(y.float(), torch.zeros(40, 4))
    loss.backward()
    return loss

"""scaled_dot_product_attention by two kernels, with a mask, causal, and with grouped heads."""

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        attend = nn.functional.scaled_dot_product_attention
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        with sdpa_kernel(SDPBackend.MATH):
            a = attend(q, k, v, is_causal=True)
        b = attend(q, k, v, attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())
        c = attend(q, k[:, :1], v[:, :1], enable_gqa=True)
        return a + b + c


def build():
    return nn.Sequential(Net())


def step(model, i):
    loss = model(torch.randn(2, 5, 16)).square().sum()
    loss.backward()
    return loss

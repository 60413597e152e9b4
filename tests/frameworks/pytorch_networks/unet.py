"""A small U-Net: group norms, residual blocks, a skip connection that is concatenated."""

import torch
import torch.nn.functional as F
from torch import nn


class ResBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, i)
        self.conv1 = nn.Conv2d(i, o, 3, padding=1)
        self.norm2 = nn.GroupNorm(4, o)
        self.conv2 = nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in = nn.Conv2d(3, 8, 3, padding=1)
        self.down1 = ResBlock(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.mid = ResBlock(16, 16)
        self.up = ResBlock(32, 8)
        self.norm_out = nn.GroupNorm(4, 8)
        self.conv_out = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x):
        x = self.conv_in(x)
        d = self.down1(x)
        m = self.mid(self.pool(d))
        u = F.interpolate(m, scale_factor=2.0, mode="nearest")
        u = self.up(torch.cat([u, d], dim=1))
        return self.conv_out(F.silu(self.norm_out(u)))


def make():
    return UNet()


def loss(model, images, labels):
    return F.mse_loss(model(images), labels)

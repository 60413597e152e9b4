"""Convolutions by groups, a squeeze-and-excite block, and a transposed convolution back to the size of the image."""

import torch
import torch.nn.functional as F
from torch import nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv_reduce = nn.Conv2d(channels, channels // 4, 1)
        self.conv_expand = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        s = self.conv_expand(F.relu(self.conv_reduce(s)))
        return x * torch.sigmoid(s)


class InvertedResidual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        hidden = 2 * channels
        self.conv_pw = nn.Conv2d(channels, hidden, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(hidden)
        self.conv_dw = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.bn2 = nn.BatchNorm2d(hidden)
        self.se = SqueezeExcite(hidden)
        self.conv_pwl = nn.Conv2d(hidden, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu6(self.bn1(self.conv_pw(x)))
        h = F.relu6(self.bn2(self.conv_dw(h)))
        return x + self.bn3(self.conv_pwl(self.se(h)))


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.down = nn.Conv2d(8, 16, 2, stride=2)
        self.block1 = InvertedResidual(16)
        self.block2 = InvertedResidual(16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.fuse = nn.Conv2d(16, 8, 3, padding=1)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, images):
        skip = self.stem(images)
        x = self.block2(self.block1(F.relu(self.down(skip))))
        x = torch.cat([skip, self.up(x)], dim=1)
        return self.head(F.relu(self.fuse(x)))


def make():
    return Segmenter()


def loss(model, images, masks):
    return F.binary_cross_entropy_with_logits(model(images), masks)

"""Layers of nn.TransformerEncoder with dropout and a mask, and a decoder with both attentions."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        relu = nn.functional.relu
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.1, relu, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoderLayer(16, 2, 32, 0.0, relu, batch_first=True)

    def forward(self, x, y):
        memory = self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True)
        return self.decoder(y, memory)


def build():
    return Net()


def step(model, i):
    loss = (model(torch.randn(3, 6, 16), torch.randn(3, 4, 16)) * torch.randn(3, 4, 16)).sum()
    loss.backward()
    return loss

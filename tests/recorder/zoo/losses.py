"""Loss functions: their values, and the gradient that comes to each."""

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(nn.Linear(8, 6))


def step(model, i):
    y = model(torch.randn(5, 8))
    target = torch.randint(0, 6, (5,))
    losses = [
        F.cross_entropy(y, target, label_smoothing=0.1),
        F.nll_loss(F.log_softmax(y, -1), target),
        F.mse_loss(y, torch.zeros(5, 6)),
        F.smooth_l1_loss(y, torch.ones(5, 6)),
        F.kl_div(y.log_softmax(-1), torch.full((5, 6), 1 / 6), reduction="batchmean"),
        F.binary_cross_entropy_with_logits(y, torch.ones(5, 6)),
        F.huber_loss(y, torch.zeros(5, 6)),
        F.cosine_embedding_loss(y[:2], y[2:4], torch.tensor([1.0, -1.0])),
        F.triplet_margin_loss(y[:1], y[1:2], y[2:3]),
        F.ctc_loss(y[:, None].log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2])),
    ]
    loss = sum(losses)
    loss.backward()
    return losses

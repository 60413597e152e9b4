"""A GRU of two layers with dropout, a bidirectional RNN on packed sequences, and a GRUCell."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 6, num_layers=2, dropout=0.2, batch_first=True)
        self.rnn = nn.RNN(6, 5, bidirectional=True, batch_first=True)
        self.cell = nn.GRUCell(10, 3)

    def forward(self, x):
        y, _ = self.gru(x)
        packed = nn.utils.rnn.pack_padded_sequence(y, [5, 3], batch_first=True)
        z, _ = self.rnn(packed)
        z, _ = nn.utils.rnn.pad_packed_sequence(z, batch_first=True)
        h = torch.zeros(2, 3)
        for t in range(3):
            h = self.cell(z[:, t], h)
        return h


def build():
    return Net()


def step(model, i):
    loss = model(torch.randn(2, 5, 4)).square().sum()
    loss.backward()
    return loss

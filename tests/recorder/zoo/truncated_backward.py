"""An LSTM and an LSTMCell whose states are cut off in place (detach_) between pieces of a sequence."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.cell, self.out = nn.LSTM(4, 6), nn.LSTMCell(4, 6), nn.Linear(6, 1)

    def forward(self, x, state, cell_state):
        y, state = self.lstm(x, state)
        cell_state = self.cell(x[0], cell_state)
        return self.out(y).sum() + self.out(cell_state[0]).sum(), state, cell_state


def build():
    return Net()


def step(model, i):
    state, cell_state, losses = None, None, []
    for _ in range(2):
        loss, state, cell_state = model(torch.randn(3, 2, 4), state, cell_state)
        loss.backward()
        for t in (*state, *cell_state):
            t.detach_()
        losses.append(loss)
    return losses

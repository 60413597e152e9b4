"""A bidirectional LSTM over embedded tokens, and a decoder that runs an LSTM cell step by step."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, WORDS, TAGS = 12, 30, 6


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * WIDTH, WIDTH)
        self.decoder = nn.LSTMCell(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.tags = nn.Linear(WIDTH, TAGS)

    def forward(self, tokens):
        states, (last, cell) = self.lstm(self.embed(tokens))
        h = torch.tanh(self.bridge(torch.cat((last[0], last[1]), -1)))
        c = cell.sum(0)
        out = []
        for t in range(tokens.shape[1]):
            h, c = self.decoder(states[:, t], (h, c))
            out.append(self.tags(self.norm(h)))
        return torch.stack(out, dim=1)


def make():
    return Tagger()


def loss(model, tokens, labels):
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=0)

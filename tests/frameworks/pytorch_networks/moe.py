"""Two of four experts for each token, of which each is a gated feed-forward part, and one that all tokens share."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, INNER, EXPERTS, CHOSEN, WORDS = 24, 32, 4, 2, 40


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(WIDTH, INNER, bias=False)
        self.w2 = nn.Linear(INNER, WIDTH, bias=False)
        self.w3 = nn.Linear(WIDTH, INNER, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(EXPERTS)])
        self.shared_expert = Expert()

    def forward(self, hidden):
        b, t, w = hidden.shape
        flat = hidden.view(-1, w)
        probabilities = F.softmax(self.gate(flat), dim=-1)
        weights, chosen = torch.topk(probabilities, CHOSEN, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            share = torch.where(chosen == number, weights, 0.0).sum(-1, keepdim=True)
            out = out + expert(flat) * share
        out = out + self.shared_expert(flat)
        return out.view(b, t, w)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.moe = SparseMoeBlock()

    def forward(self, x):
        return x + self.moe(self.norm(x))


class MoeModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make():
    return MoeModel()


def loss(model, tokens, labels):
    return F.cross_entropy(model(tokens).view(-1, WORDS), labels.view(-1))

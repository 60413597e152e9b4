"""An encoder and a decoder with cross attention, norms without a mean, a bias by distance."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, INNER, WORDS = 32, 4, 64, 44


class T5LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x


class Attention(nn.Module):
    def __init__(self, causal=False, bias=False):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH, bias=False)
        self.v = nn.Linear(WIDTH, WIDTH, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.causal = causal
        if bias:
            self.relative_attention_bias = nn.Embedding(16, HEADS)
        self.has_bias = bias

    def split(self, t):
        return t.view(t.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, memory=None, position=None):
        memory = x if memory is None else memory
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        scores = torch.matmul(q, k.transpose(3, 2))
        if self.has_bias:
            n = x.shape[1]
            distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(-7, 7) + 7
            position = self.relative_attention_bias(distance).permute(2, 0, 1).unsqueeze(0)
        if position is not None:
            scores = scores + position
        if self.causal:
            n = x.shape[1]
            mask = torch.triu(torch.ones(n, n), diagonal=1) * -1e9
            scores = scores + mask
        weights = F.softmax(scores.float(), dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous().view(x.shape[0], -1, WIDTH)
        return self.o(out), position


class FF(nn.Module):
    def __init__(self):
        super().__init__()
        self.wi = nn.Linear(WIDTH, INNER, bias=False)
        self.wo = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.wo(F.relu(self.wi(x)))


class Block(nn.Module):
    def __init__(self, decoder, bias):
        super().__init__()
        self.self_norm = T5LayerNorm(WIDTH)
        self.self_attention = Attention(decoder, bias)
        if decoder:
            self.cross_norm = T5LayerNorm(WIDTH)
            self.cross_attention = Attention()
        self.ff_norm = T5LayerNorm(WIDTH)
        self.ff = FF()
        self.decoder = decoder

    def forward(self, x, memory=None, position=None):
        a, position = self.self_attention(self.self_norm(x), None, position)
        x = x + a
        if self.decoder:
            x = x + self.cross_attention(self.cross_norm(x), memory)[0]
        return x + self.ff(self.ff_norm(x)), position


class Stack(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.block = nn.ModuleList([Block(decoder, i == 0) for i in range(2)])
        self.final_layer_norm = T5LayerNorm(WIDTH)

    def forward(self, x, memory=None):
        position = None
        for b in self.block:
            x, position = b(x, memory, position)
        return self.final_layer_norm(x)


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(WORDS, WIDTH)
        self.encoder = Stack(False)
        self.decoder = Stack(True)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids, targets):
        memory = self.encoder(self.shared(ids))
        out = self.decoder(self.shared(targets), memory)
        return self.lm_head(out)


def make():
    return T5()


def loss(model, ids, targets):
    logits = model(ids, targets[:, :-1])
    return F.cross_entropy(logits.view(-1, WORDS), targets[:, 1:].reshape(-1))

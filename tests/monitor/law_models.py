"""Small models and data of the cases of laws."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint as recompute

WORDS = 40


def batches(steps, size=8):
    """Random features with labels."""
    return [(torch.randn(size, 12), torch.randint(0, 5, (size,))) for _ in range(steps)]


def text(steps, length=10):
    """Random tokens above 0."""
    return [torch.randint(1, WORDS, (4, length)) for _ in range(steps)]


class Classifier(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 24), nn.GELU(), nn.Dropout(dropout), nn.Linear(24, 24), nn.LayerNorm(24)
        )
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.body(x))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class Lookup(nn.Module):
    """An embedding that does the lookup itself."""

    def __init__(self, padding, works):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WORDS, 16) * 0.1)
        self.padding_idx, self._works = padding, works

    def forward(self, tokens):
        return functional.embedding(tokens, self.weight, self.padding_idx if self._works else None)


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.norm(x)
        x = x + self.dropout(self.attention(y, y, y, attn_mask=mask, need_weights=False)[0])
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm(x)))))


class Language(nn.Module):
    """A decoder that returns a dict with the loss, as models of Hugging Face do."""

    def __init__(
        self, tied=False, dropout=0.0, checkpoint=False, keep_generator=True, padding=None, padding_works=True
    ):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16) if padding is None else Lookup(padding, padding_works)
        self.layers = nn.ModuleList(Block(dropout) for _ in range(2))
        self.final = nn.LayerNorm(16)
        self.head = nn.Linear(16, WORDS, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        self.checkpoint, self.keep_generator = checkpoint, keep_generator

    def forward(self, tokens, labels=None):
        x = self.embedding(tokens)
        for layer in self.layers:
            if self.checkpoint and self.training:
                x = recompute(layer, x, use_reentrant=False, preserve_rng_state=self.keep_generator)
            else:
                x = layer(x)
        logits = self.head(self.final(x))
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


class Experts(nn.Module):
    """One layer of experts between two linear ones."""

    def __init__(self, equal=False, all_tokens=False, closed=None, count=4):
        super().__init__()
        self.entry, self.router, self.head = nn.Linear(12, 16), nn.Linear(16, count), nn.Linear(16, 5)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16)) for _ in range(count)
        )
        if equal:
            for expert in self.experts[1:]:
                expert.load_state_dict(self.experts[0].state_dict())
        self.all_tokens, self.closed = all_tokens, closed

    def forward(self, x):
        x = self.entry(x)
        share = torch.softmax(self.router(x), -1)
        if self.all_tokens:
            return self.head(
                sum(expert(x) for expert in self.experts) / len(self.experts) + share.sum(-1, keepdim=True)
            )
        if self.closed is not None:
            share = share.index_fill(-1, torch.tensor([self.closed]), 0.0)
        weight, chosen = share.topk(2, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            row, slot = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, row, expert(x[row]) * weight[row, slot, None])
        return self.head(out)

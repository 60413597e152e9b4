"""An encoder with padding, norms behind the residual sums, and a pooled answer."""

import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, INNER, WORDS, CLASSES = 32, 4, 2, 64, 40, 3


class BertEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, WIDTH)
        self.position_embeddings = nn.Embedding(16, WIDTH)
        self.token_type_embeddings = nn.Embedding(2, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, ids, types):
        positions = torch.arange(ids.shape[1])[None]
        hidden = self.word_embeddings(ids) + self.token_type_embeddings(types)
        hidden = hidden + self.position_embeddings(positions)
        return self.LayerNorm(hidden)


class BertSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)

    def heads(self, x):
        return x.view(*x.shape[:-1], HEADS, self.size).permute(0, 2, 1, 3)

    def forward(self, hidden, mask):
        q, k, v = self.heads(self.query(hidden)), self.heads(self.key(hidden)), self.heads(self.value(hidden))
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / math.sqrt(self.size)
        scores = scores + mask
        probabilities = F.softmax(scores, dim=-1)
        context = torch.matmul(probabilities, v)
        return context.permute(0, 2, 1, 3).reshape(hidden.shape)


class BertSelfOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, hidden, residual):
        return self.LayerNorm(self.dense(hidden) + residual)


class BertAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.self = BertSelfAttention()
        self.output = BertSelfOutput()

    def forward(self, hidden, mask):
        return self.output(self.self(hidden, mask), hidden)


class BertIntermediate(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, INNER)

    def forward(self, hidden):
        return F.gelu(self.dense(hidden))


class BertOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(INNER, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, hidden, residual):
        hidden = self.dense(hidden)
        return self.LayerNorm(hidden + residual)


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = BertAttention()
        self.intermediate = BertIntermediate()
        self.output = BertOutput()

    def forward(self, hidden, mask):
        hidden = self.attention(hidden, mask)
        return self.output(self.intermediate(hidden), hidden)


class BertEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([BertLayer() for _ in range(LAYERS)])

    def forward(self, hidden, mask):
        for layer in self.layer:
            hidden = layer(hidden, mask)
        return hidden


class BertPooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden):
        return torch.tanh(self.dense(hidden[:, 0]))


class BertModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = BertEmbeddings()
        self.encoder = BertEncoder()
        self.pooler = BertPooler()

    def forward(self, ids, types, mask):
        extended = (1.0 - mask[:, None, None, :].float()) * -10000.0
        return self.pooler(self.encoder(self.embeddings(ids, types), extended))


class BertForSequenceClassification(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel()
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids, types, mask):
        return self.classifier(self.bert(ids, types, mask))


def make():
    return BertForSequenceClassification()


def loss(model, ids, types, mask, labels):
    return F.cross_entropy(model(ids, types, mask), labels)

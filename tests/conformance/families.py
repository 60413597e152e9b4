"""Families of networks by how tensors flow through their modules, each as small as it can be. One forward and one backward.

A builder takes (rank, world) and returns a Training, as those of models.py do.
"""

import copy
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F
from models import Training, UNet
from torch.utils.checkpoint import checkpoint


def once(model, loss_of):
    """One forward and one backward; no optimizer."""

    def losses(capture):
        with capture():
            loss = loss_of()
            loss.backward()
        return [loss]

    return Training(model, [], losses)


class Shortcut(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def shortcuts(rank, world):
    """Around a module, around two, from the input to the end."""

    class Highway(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.gate = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            h = self.norm(x)
            gate = torch.sigmoid(self.gate(h))
            return x * (1 - gate) + gate * self.up(h)

    inner = nn.Sequential(nn.LayerNorm(8), Shortcut(nn.Linear(8, 8)), nn.GELU())
    model = nn.Sequential(nn.Linear(8, 8), Shortcut(inner), Shortcut(Highway()), Highway())
    x = torch.randn(4, 8)
    return once(model, lambda: (model(x) + x).square().mean())


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, query, key, value):
        scores = self.q(query) @ self.k(key).transpose(-1, -2)
        return scores.softmax(-1) @ self.v(value)


def attention(rank, world):
    """One tensor as query, key and value; one as key and value."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.cross, self.norm = Attention(8), Attention(8), nn.LayerNorm(8)

        def forward(self, x, memory):
            y = x + self.own(x, x, x)
            y = self.norm(y)
            y = y + self.own(y, y, y)
            return y + self.cross(y, memory, memory)

    model, x, memory = Model(), torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    return once(model, lambda: model(x, memory).square().mean())


def attention_of_torch(rank, world):
    """Layers of torch, which compute in another way where query, key and value are one object."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.multi = nn.MultiheadAttention(8, 2, batch_first=True)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

        def forward(self, x, memory):
            y = x + self.multi(x, x, x, need_weights=False)[0]
            return self.decoder(self.layer(y), memory)

    model, x, memory = Model(), torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    return once(model, lambda: model(x, memory).square().mean())


@dataclasses.dataclass
class Found:
    mean: torch.Tensor
    spread: torch.Tensor


def outputs(rank, world):
    """Tuples, dicts, dataclasses; one output unused; one that is an argument."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.left(x), self.right(x)

    class Named(Two):
        def forward(self, x):
            left, right = super().forward(x)
            return {"left": left, "right": right, "input": x}

    class Held(Two):
        def forward(self, x):
            return Found(*super().forward(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.two, self.named, self.held = nn.Linear(8, 8), Two(), Named(), Held()

        def forward(self, x):
            used, _ = self.two(self.enter(x))
            named = self.named(used)
            found = self.held(named["left"] * named["right"])
            return found.mean + named["input"], found.spread

    model, x = Model(), torch.randn(4, 8)
    return once(model, lambda: sum(part.square().mean() for part in model(x)))


def recurrent(rank, world):
    """A cell that is called at each step, cells and layers of torch."""

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.x, self.h = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)

        def forward(self, x, h):
            h = torch.tanh(self.x(x) + self.h(h))
            return h, h.sum(-1, keepdim=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.gates = Cell(), nn.LSTMCell(6, 6)
            self.layer, self.last = nn.GRU(6, 6, batch_first=True), nn.RNN(6, 6, batch_first=True)

        def forward(self, x):
            h = c = torch.zeros(x.shape[0], 6)
            sums = []
            for step in range(x.shape[1]):
                h, total = self.cell(x[:, step], h)
                h, c = self.gates(h, (h, c))
                sums.append(total)
            y, state = self.layer(x, h[None])
            y, _ = self.last(y, state)
            return y.mean() + torch.cat(sums).mean()

    model, x = Model(), torch.randn(2, 4, 6)
    return once(model, lambda: model(x).square())


def experts(rank, world):
    """Tokens go to two of four experts; the router's balance is a second part of the loss."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(8, 4, bias=False)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8)) for _ in range(4))
            self.shared = nn.Linear(8, 8)

        def forward(self, x):
            share = self.router(x).softmax(-1)
            weights, chosen = share.topk(2, dim=-1)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                token, place = torch.where(chosen == number)
                if token.numel():
                    out.index_add_(0, token, expert(x[token]) * weights[token, place, None])
            load = F.one_hot(chosen, 4).float().mean((0, 1))
            return out + self.shared(x), (load * share.mean(0)).sum()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(2))

        def forward(self, x):
            balance = 0.0
            for layer in self.layers:
                y, extra = layer(x)
                x, balance = x + y, balance + extra
            return x, balance

    model, x = Model(), torch.randn(12, 8)

    def loss():
        y, balance = model(x)
        return y.square().mean() + 0.01 * balance

    return once(model, loss)


def unet(rank, world):
    model = UNet(4)
    clean, noise, t = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.rand(2, 2)
    return once(model, lambda: F.mse_loss(model(clean + noise, t), noise))


def siamese(rank, world):
    """One module for two inputs, and the same one under a second name."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
            self.same = self.tower
            self.norm = nn.LayerNorm(4)

        def forward(self, left, right):
            return F.cosine_similarity(self.norm(self.tower(left)), self.norm(self.same(right)))

    model, left, right = Model(), torch.randn(4, 8), torch.randn(4, 8)
    return once(model, lambda: (1 - model(left, right)).mean())


def tied(rank, world):
    """One weight in an embedding, a layer and a function."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body = nn.Embedding(20, 8), nn.Linear(8, 8)
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.embed.weight
            self.scale = nn.Parameter(torch.ones(8))

        def forward(self, tokens):
            y = self.body(self.embed(tokens)) * self.scale
            return self.head(y) + F.linear(y, self.embed.weight)

    model, tokens = Model(), torch.randint(0, 20, (2, 5))
    return once(model, lambda: F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))


def checkpointed(rank, world):
    """Modules whose forward runs again in the backward pass, all of them of one kind."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = nn.Linear(8, 8)
            self.blocks = nn.ModuleList(
                Shortcut(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.Dropout(0.2))) for _ in range(2)
            )
            self.leave = nn.Linear(8, 8)

        def forward(self, x):
            x = self.enter(x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.leave(x)

    model, x = Model(), torch.randn(4, 8)
    return once(model, lambda: model(x).square().mean())


def adversaries(rank, world):
    """Two models in one start(), three backward passes, a penalty on gradients."""
    maker = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6))
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    real, noise = torch.randn(5, 6), torch.randn(5, 4)

    def losses(capture):
        with capture():
            made = maker(noise)
            judged = judge(made.detach()).mean() - judge(real).mean()
            judged.backward()
            fooled = -judge(made).mean()
            fooled.backward()
        return [judged, fooled]

    return Training([maker, judge], [], losses)


def teacher(rank, world):
    """A frozen model without gradients beside the one that learns; a layer of it is frozen, too."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
            self.student[0].requires_grad_(False)
            self.teacher = copy.deepcopy(self.student)

        def forward(self, x):
            with torch.no_grad():
                aim = self.teacher(x).softmax(-1)
            return F.kl_div(self.student(x).log_softmax(-1), aim + 0.01, reduction="batchmean")

    model, x = Model(), torch.randn(4, 8, requires_grad=True)
    return once(model, lambda: model(x))


FAMILIES = {
    builder.__name__: builder
    for builder in (
        *(
            shortcuts,
            attention,
            attention_of_torch,
            outputs,
            recurrent,
            experts,
            unet,
            siamese,
            tied,
            checkpointed,
            adversaries,
            teacher,
        ),
    )
}
FAMILIES = {f"family_{name}": builder for name, builder in FAMILIES.items()}


def levels_of(model):
    """Where a module computes in another way, it calls other functions: only modules are compared."""
    return ("L0",) if model == "family_attention_of_torch" else ("L0", "mix")

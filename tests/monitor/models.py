"""Small trainings to watch: LLaMA-like, residual MLP, convolutions, mixture of experts; every size is a parameter.

Three more families are of no split but the last one: recurrent, residual convolutions with batch norm, an encoder with dropout.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Shape(NamedTuple):
    """The size of a model and the setting of its training."""

    family: str
    width: int
    layers: int
    batch: int
    lr: float
    accumulate: int = 1
    clip: float = 1.0
    experts: int = 4
    heads: int = 4
    tokens: int = 16
    optimizer: str = "adamw"  # or sgd
    schedule: str = "cosine"  # or constant
    samples: int = 0  # of a data set that is gone through again and again, its last batch smaller; 0: always new data
    chosen: int = 2  # experts of a token


VOCABULARY, FEATURES, CLASSES = 48, 16, 8


class Norm(nn.Module):
    """Root mean square."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            p(x).view(batch, length, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """The best of some experts for each token; experts without tokens take no part."""

    def __init__(self, width, count, chosen):
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(Gated(width, width) for _ in range(count))
        self.closed: set = set()  # experts that get no token

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        logits = self.router(flat)
        if self.closed:
            logits = logits.index_fill(1, torch.tensor(sorted(self.closed)), -1e9)
        weight, chosen = torch.softmax(logits, -1).topk(self.chosen, -1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            row, slot = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, row, expert(flat[row]) * weight[row, slot].unsqueeze(-1))
        self.balance = len(self.experts) * (torch.softmax(logits, -1).mean(0) ** 2).sum()
        return out.view_as(x)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_norm, self.post_norm = Norm(shape.width), Norm(shape.width)
        self.self_attn = Attention(shape.width, shape.heads)
        moe = shape.family == "moe"
        self.mlp = Experts(shape.width, shape.experts, shape.chosen) if moe else Gated(shape.width, 2 * shape.width)

    def forward(self, x):
        x = x + self.self_attn(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class Language(nn.Module):
    """A decoder on text of a random grammar."""

    def __init__(self, shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, shape.width)
        self.position = nn.Parameter(torch.randn(shape.tokens, shape.width) * 0.02)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        self.lm_head = nn.Linear(shape.width, VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2 and parameter is not self.position:
                nn.init.normal_(parameter, std=0.08)

    def forward(self, tokens):
        x = self.embed_tokens(tokens) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))

    def loss(self, inputs, target):
        logits = self(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        balance = [m.balance for m in self.modules() if isinstance(m, Experts)]
        return loss + 0.01 * sum(balance) if balance else loss


class Mlp(nn.Module):
    """A residual network that learns what a fixed random one computes."""

    def __init__(self, shape):
        super().__init__()
        self.entry = nn.Linear(FEATURES, shape.width)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(shape.width),
                nn.Linear(shape.width, 2 * shape.width),
                nn.GELU(),
                nn.Linear(2 * shape.width, shape.width),
            )
            for _ in range(shape.layers)
        )
        self.head = nn.Linear(shape.width, CLASSES)

    def forward(self, x):
        x = self.entry(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)

    def loss(self, inputs, target):
        return functional.mse_loss(self(inputs), target)


class Conv(nn.Module):
    """Convolutions that tell noisy patterns apart."""

    def __init__(self, shape):
        super().__init__()
        widths = [1] + [shape.width] * shape.layers
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU())
            for a, b in zip(widths, widths[1:])
        )
        self.head = nn.Linear(shape.width * 4, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(functional.adaptive_avg_pool2d(x, 2).flatten(1))

    def loss(self, inputs, target):
        return functional.cross_entropy(self(inputs), target)


class Recurrent(nn.Module):
    """A recurrent network on text of a random grammar."""

    def __init__(self, shape):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, shape.width)
        self.layers = nn.ModuleList(nn.GRU(shape.width, shape.width, batch_first=True) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, VOCABULARY)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)[0]
        return self.head(x)

    def loss(self, inputs, target):
        return functional.cross_entropy(self(inputs).flatten(0, 1), target.flatten())


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        return functional.relu(x + self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x))))))


class Residual(nn.Module):
    """Residual convolutions with batch norm."""

    def __init__(self, shape):
        super().__init__()
        self.stem = nn.Conv2d(1, shape.width, 3, padding=1)
        self.layers = nn.ModuleList(Block(shape.width) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean((2, 3)))

    def loss(self, inputs, target):
        return functional.cross_entropy(self(inputs), target)


class Encoder(nn.Module):
    """Attention over the rows of an image, with dropout."""

    def __init__(self, shape):
        super().__init__()
        self.patch = nn.Linear(8, shape.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(shape.width, shape.heads, 2 * shape.width, 0.1, batch_first=True)
            for _ in range(shape.layers)
        )
        self.head = nn.Linear(8 * shape.width, CLASSES)

    def forward(self, x):
        x = self.patch(x[:, 0])
        for layer in self.layers:
            x = layer(x)
        return self.head(x.flatten(1))

    def loss(self, inputs, target):
        return functional.cross_entropy(self(inputs), target)


FAMILIES = {
    "llama": Language,
    "moe": Language,
    "mlp": Mlp,
    "conv": Conv,
    "gru": Recurrent,
    "residual": Residual,
    "encoder": Encoder,
}


def make_model(shape: Shape) -> nn.Module:
    """The model of a shape, freshly initialised."""
    return FAMILIES[shape.family](shape)


class Data:
    """Batches of a seed; each step, micro batch and rank has its own."""

    def __init__(self, shape: Shape, seed: int):
        self.shape, self.seed = shape, seed
        fixed = torch.Generator().manual_seed(1_000_003 * seed + 17)
        # Every state of the grammar goes on with one of a few tokens.
        self.table = torch.softmax(2.5 * torch.randn(VOCABULARY, VOCABULARY, generator=fixed), -1)
        self.teacher = [torch.randn(FEATURES, 24, generator=fixed) / 4, torch.randn(24, CLASSES, generator=fixed) / 5]
        self.patterns = torch.randn(CLASSES, 1, 8, 8, generator=fixed)

    def batch(self, step: int, micro: int, rank: int) -> tuple:
        """(inputs, target)."""
        count = self.shape.batch
        if self.shape.samples:
            batches = -(-self.shape.samples // count)
            count = min(count, self.shape.samples - step % batches * count)
            step = step % batches
        number = ((self.seed * 7919 + step) * 64 + micro) * 64 + rank
        generator = torch.Generator().manual_seed(number % (1 << 62))
        if self.shape.family in ("llama", "moe", "gru"):
            tokens = [torch.randint(0, VOCABULARY, (count,), generator=generator)]
            for _ in range(self.shape.tokens):
                tokens.append(torch.multinomial(self.table[tokens[-1]], 1, generator=generator)[:, 0])
            text = torch.stack(tokens, 1)
            return text[:, :-1], text[:, 1:]
        if self.shape.family == "mlp":
            x = torch.randn(count, FEATURES, generator=generator)
            noise = 0.1 * torch.randn(count, CLASSES, generator=generator)
            return x, torch.tanh(x @ self.teacher[0]) @ self.teacher[1] + noise
        label = torch.randint(0, CLASSES, (count,), generator=generator)
        return self.patterns[label] + 1.5 * torch.randn(count, 1, 8, 8, generator=generator), label

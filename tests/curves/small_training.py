"""A small language model whose training is repeated with other orders of summation, and writes a log for each run.

Two runs of the same configuration see the same examples at each step, from the same weights. Only the order in which the
examples of a batch stand differs, drawn anew for each run and step, and with it the order in which the gradients of the
examples are added: mathematically nothing changes, in floating point it does. That is what atomic additions and reductions
over a network do to a training on a device, and it can be had on a CPU, where two plain runs are equal to the bit.
"""

import math

import torch
from torch import nn

VOCAB, WIDTH, LENGTH, BATCH = 96, 48, 24, 16


class Block(nn.Module):
    """Attention and a gated MLP, both behind RMSNorm."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(WIDTH, 2 * WIDTH, bias=False),
            nn.Linear(WIDTH, 2 * WIDTH, bias=False),
            nn.Linear(2 * WIDTH, WIDTH, bias=False),
        )

    def forward(self, x):
        """(batch, length, width) to the same."""
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, WIDTH))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


def model_of(seed):
    """The model with the weights of a seed."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Embedding(VOCAB, WIDTH), Block(), Block(), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCAB))


def batch_of(seed, step):
    """Sequences that can be learnt: each token follows from the one before, with noise."""
    generator = torch.Generator().manual_seed(1_000_003 * seed + step)
    tokens = torch.randint(VOCAB, (BATCH, 1), generator=generator)
    for _ in range(LENGTH):
        noise = torch.randint(4, (BATCH, 1), generator=generator)
        tokens = torch.cat([tokens, (tokens[:, -1:] * 5 + 7 + noise) % VOCAB], 1)
    return tokens


def train(path, seed, order, steps, lr=1e-3, beta2=0.999, bf16=False):
    """Writes a log of `steps` steps; `order` names the run: it seeds the orders of summation."""
    model = model_of(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, beta2), weight_decay=0.1)
    shuffle = torch.Generator().manual_seed(order)
    with open(path, "w", encoding="utf-8") as log:
        for step in range(1, steps + 1):
            tokens = batch_of(seed, step)[torch.randperm(BATCH, generator=shuffle)]
            total = 0.0
            for part in tokens.chunk(4):  # accumulated: their sum has an order, too
                with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    logits = model(part[:, :-1])
                loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), part[:, 1:].flatten()) / 4
                loss.backward()
                total += float(loss.detach())
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
            optimizer.step()
            optimizer.zero_grad()
            if not math.isfinite(total):
                raise ValueError(f"the loss of step {step} is {total}")
            log.write(f"step {step} loss: {total:.9f} grad_norm: {norm:.9f}\n")

"""Trainings of one small model that differ in their loss, or their step; `step_forms_scenario.py KIND LEVEL DIRECTORY`.

Its modules hold parameters of their own beside others; two steps, an average of the weights behind each.
"""

import copy
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger


class Mixer(nn.Module):
    def __init__(self, late):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(-1, 1, 16))
        self.out = nn.Linear(16, 16)
        self.late = late  # how many places behind its own each one sees

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        hidden = torch.ones(6, 6, dtype=torch.bool).triu(1 + self.late)
        mixed = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ x
        return x + self.out(mixed * torch.exp(self.decay))


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16, eps=1e-3 if kind == "weights_and_eps" else 1e-5)
        self.mixers = nn.ModuleList(Mixer(kind == "mask") for _ in range(2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.norm(self.first(x))
        for mixer in self.mixers:
            x = mixer(x)
        return self.head(x)


def optimizer_of(kind, model):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 1e-3}, {"params": others}]
    if kind == "all_decay":
        groups[1]["weight_decay"] = 1e-3
    if kind == "other_groups":
        groups = [{"params": others}, {"params": matrices, "weight_decay": 1e-3}]
    return torch.optim.SGD(groups, lr=1e-2, momentum=0.9, nesterov=True, foreach=kind == "lists")


def loss_of(kind, logits, labels, weights):
    flat, labels = logits.flatten(0, 1), labels.flatten()
    classes = torch.tensor([1.0, 2, 1, 1, 3 if kind != "weights_and_eps" else 1])
    if kind == "masked_loss":
        each = F.cross_entropy(flat, labels, ignore_index=0, weight=classes, reduction="none")
        loss = each.sum() / (classes[labels] * (labels != 0)).sum()
    else:
        loss = F.cross_entropy(flat, labels, ignore_index=0, weight=classes)
    each = F.cross_entropy(flat, labels, reduction="none")
    loss = loss + (each * weights).mean()
    return loss if kind == "term" else loss.add(logits.logsumexp(-1).pow(2).mean(), alpha=1e-3)


def train(kind, level, folder):
    torch.manual_seed(0)
    model = Model(kind)
    if kind == "own_parameter":
        model.mixers[0].decay.data.mul_(1.1)
    if kind == "frozen":
        model.first.weight.requires_grad_(False)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = optimizer_of(kind, model)
    debugger = PrecisionDebugger(task="statistics", level=level, dump_path=str(folder))
    for step in range(2):
        generator = torch.Generator().manual_seed(step)
        batch, labels = torch.randn(4, 6, 8, generator=generator), torch.randint(0, 5, (4, 6), generator=generator)
        weights = torch.rand(24, generator=generator)
        if kind == "other_order":
            batch, labels = batch.flip(0), labels.flip(0)
        debugger.start(model=model)
        optimizer.zero_grad()
        for _ in range(2):
            loss_of(kind, model(batch), labels, weights).backward()
        clipped = model.head if kind == "head_clipped" else model
        torch.nn.utils.clip_grad_norm_(clipped.parameters(), 0.1)
        optimizer.step()
        if kind == "head_twice":
            torch.optim.SGD(model.head.parameters(), lr=1e-3, foreach=False).step()
        kept = 0.8 if kind == "average" else 0.9
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters()):
                mean.mul_(kept).add_(weight, alpha=0.1)
        debugger.stop()
        debugger.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(*sys.argv[1:])

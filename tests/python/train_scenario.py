"""Trains a small model for two steps, with or without the tool, and prints what the training computed as JSON.

Runs in an interpreter of its own, ours or the earlier tool's: `train_scenario.py MODEL [--level mix] [--out DIR] ...`
"""

import argparse
import hashlib
import json
import os
import random
from collections import namedtuple

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

STEPS = 2


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        max_position_embeddings=64,
        use_cache=False,
        attn_implementation="eager",
        attention_dropout=0.1,
    )
    model = LlamaForCausalLM(config)
    tokens = torch.randint(0, 96, (2, 16))
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


class ConvNet(nn.Module):
    """BatchNorm with running statistics, and activations that overwrite the output of a module and of an operator."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.left = nn.Conv2d(8, 8, 3, padding=1)
        self.right = nn.Conv2d(8, 8, 1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout2d(0.3)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.left(x)
        y += self.right(x)
        y = F.relu(self.norm(y), inplace=True)
        y = F.max_pool2d(self.drop(y), 2)
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


def conv():
    model = ConvNet()
    images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
    return model, lambda: F.cross_entropy(model(images), labels)


Pair = namedtuple("Pair", "first second")


class Branches(nn.Module):
    """Returns a dict that holds a named tuple, a list, None and a number."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, scale=1.0, extras=None):
        y = self.drop(F.gelu(self.up(x)))
        shift = extras["shift"] if extras else 0.0
        return {"pair": Pair(self.down(y) * scale + shift, y.mean()), "all": [x, y[:, :2]], "none": None, "count": 3}


class Nested(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.plain = Branches(width)
        self.replayed = Branches(width)
        self.reentrant = Branches(width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 20)

    def forward(self, tokens):
        x = self.embed(tokens)
        out = self.plain(x, scale=0.5, extras={"shift": torch.ones(())})
        x = x + out["pair"].first
        x = x + checkpoint(lambda t: self.replayed(t)["pair"].first, x, use_reentrant=False)
        x = x + checkpoint(lambda t: self.reentrant(t)["pair"].first, x, use_reentrant=True)
        return self.head(self.norm(x)), out["pair"].second


def nested():
    model = Nested()
    tokens = torch.randint(0, 20, (6,))

    def loss():
        logits, extra = model(tokens)
        return F.cross_entropy(logits, tokens) + 0.1 * extra**2

    return model, loss


class Linears(nn.Module):
    """Without recomputation and dropout, for comparisons of two dumps."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.LayerNorm(16))
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        return self.last(self.block(self.first(x)) + 1.0)


def linears():
    model = Linears()
    x = torch.randn(10, 8)
    return model, lambda: model(x).pow(2).sum()


MODELS = {"llama": llama, "conv": conv, "nested": nested, "linears": linears}


def bits(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            digest.update(b"none")
        else:
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def rng_state():
    numpy_state = numpy.random.get_state()
    text = repr((random.getstate(), numpy_state[1].tolist(), numpy_state[2:]))
    return bits([torch.get_rng_state()]), hashlib.sha256(text.encode()).hexdigest()


def train(model, loss_of, debugger, steps, outside_optimizer):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    record = []
    for _ in range(steps):
        if debugger:
            debugger.start(model=model, rank_id=0)
        loss = loss_of()
        loss.backward()
        if outside_optimizer and debugger:
            debugger.stop()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if debugger:
            if not outside_optimizer:
                debugger.stop()
            debugger.step()
        grads = bits(p.grad for p in model.parameters())
        record.append({"loss": loss.item().hex(), "norm": norm.item().hex(), "grads": grads, "rng": rng_state()})
        optimizer.zero_grad()
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--level")
    parser.add_argument("--task", default="statistics")
    parser.add_argument("--summary", choices=("statistics", "md5", "xor"), default="statistics")
    parser.add_argument("--asynchronous", action="store_true", help="async_dump, with a list that names every op")
    parser.add_argument("--out")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--problem", action="store_true", help="one weight is scaled, as a run that has gone wrong")
    parser.add_argument("--stop-before-optimizer", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    debugger = None
    if args.level:
        from msprobe.pytorch import PrecisionDebugger

        # config.json has to lie outside the results, which are listed by some tests.
        path = os.path.abspath(args.out) + ".config.json"
        config = {
            "task": args.task,
            "level": args.level,
            "dump_path": os.path.abspath(args.out),
            "rank": [],
            "step": [],
        }
        with open(path, "w", encoding="utf-8") as file:
            section = {"scope": [], "list": ["."] if args.asynchronous else [], "summary_mode": args.summary}
            json.dump({**config, "async_dump": args.asynchronous, args.task: section}, file)
        debugger = PrecisionDebugger(config_path=path)
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    model, loss_of = MODELS[args.model]()
    model.train()
    if args.problem:
        with torch.no_grad():
            list(model.parameters())[2].mul_(1.5)
    steps = train(model, loss_of, debugger, args.steps, args.stop_before_optimizer)
    result = {
        "steps": steps,
        "parameters": bits(model.parameters()),
        "buffers": bits(model.buffers()),
        "versions": [p._version for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
    }
    print("RESULT" + json.dumps(result))


if __name__ == "__main__":
    main()

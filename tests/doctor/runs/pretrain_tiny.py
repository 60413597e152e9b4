"""Trains a small network on a small corpus, with arguments and a log as Megatron-LM has them."""

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import network
import numpy as np
import torch
from capture import weight_of
from toy_text import batch, save_batch

parser = argparse.ArgumentParser()
for name, kind, default in (
    ("norm-epsilon", float, 1e-5),
    ("rotary-base", float, 10000.0),
    ("hidden-dropout", float, 0.0),
    ("lr", float, 1e-2),
    ("adam-beta1", float, 0.9),
    ("adam-beta2", float, 0.95),
    ("adam-eps", float, 1e-8),
    ("weight-decay", float, 0.1),
    ("clip-grad", float, 1.0),
    ("lr-warmup-iters", int, 0),
    ("train-iters", int, 30),
    ("vocab-size", int, 50),
    ("micro-batch-size", int, 4),
    ("global-batch-size", int, 4),
    ("seed", int, 42),
    ("save-init", str, ""),
    ("save-data", str, ""),
    ("threads", int, 1),
    ("optimizer-form", str, "torch"),
):
    parser.add_argument(f"--{name}", type=kind, default=default)
parser.add_argument("--autocast", action="store_true")
args, _ = parser.parse_known_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)
torch.set_num_threads(args.threads)


def build():
    network.WORDS = args.vocab_size
    if hasattr(network, "ROPE_BASE"):
        network.ROPE_BASE = args.rotary_base
    model = network.make()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.from_numpy(weight_of(network, name, tensor.shape)))
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = args.norm_epsilon
    return model.train()


def groups(model):
    """Biases and weights of one dimension do not decay."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decayed, "weight_decay": args.weight_decay}, {"params": others, "weight_decay": 0.0}]


def make_optimizer(model):
    betas = (args.adam_beta1, args.adam_beta2)
    if args.optimizer_form == "plain":
        from adamw import AdamW

        return AdamW(groups(model), args.lr, betas, args.adam_eps)
    form = {"torch": {}, "loop": {"foreach": False}, "fused": {"fused": True}}[args.optimizer_form]
    return torch.optim.AdamW(groups(model), lr=args.lr, betas=betas, eps=args.adam_eps, **form)


def rate_of(step):
    if step < args.lr_warmup_iters:
        return args.lr * (step + 1) / args.lr_warmup_iters
    return args.lr


def main():
    model = build()
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)
    optimizer = make_optimizer(model)
    if args.hidden_dropout:
        model.register_forward_pre_hook(lambda module, inputs: None)
        network.dropout = args.hidden_dropout
    pieces = args.global_batch_size // args.micro_batch_size
    for step in range(args.train_iters):
        tokens, labels = batch(step, args.vocab_size, args.seed)
        if args.save_data:
            save_batch(args.save_data, step, tokens, labels)
        rate = rate_of(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        total = 0.0
        for part in range(pieces):
            rows = slice(part * args.micro_batch_size, (part + 1) * args.micro_batch_size)
            with torch.autocast("cpu", torch.bfloat16, enabled=args.autocast):
                loss = network.loss(model, torch.from_numpy(tokens[rows]), torch.from_numpy(labels[rows]))
            loss = loss / pieces
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        print(
            f" iteration {step + 1:8d}/{args.train_iters:8d} | learning rate: {rate:.6E} | "
            f"global batch size: {args.global_batch_size:5d} | lm loss: {total:.6E} | grad norm: {norm.item():.6f} |",
            flush=True,
        )


main()

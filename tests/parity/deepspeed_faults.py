"""Faults between ranks for deepspeed_train.py."""

import torch
import torch.distributed as dist


def on_gradients(change):
    """A hook on the parameters, before DeepSpeed reduces what it gives."""

    def plant(engine):
        for name, parameter in engine.module.named_parameters():
            if name == "blocks.1.up.weight":
                parameter.register_hook(change)

    return plant


def rank1(factor):
    return lambda gradient: gradient * factor if dist.get_rank() == 1 else gradient


def summed(engine):
    """The mean over the ranks is not taken."""
    own = engine.backward

    def backward(loss, *args, **kwargs):
        return own(loss * dist.get_world_size(), *args, **kwargs)

    engine.backward = backward


def norm_of_one_rank(engine):
    """The norm is not added up over the ranks."""
    optimizer = engine.optimizer
    name = "scaled_global_norm"
    own = getattr(optimizer, name)
    setattr(optimizer, name, lambda *a, **k: own(*a, **k) / dist.get_world_size() ** 0.5)


def drift(engine):
    """After its step one rank changes what all hold alike."""
    own = engine.optimizer.step

    def step(*args, **kwargs):
        own(*args, **kwargs)
        if dist.get_rank() == 1:
            with torch.no_grad():
                dict(engine.module.named_parameters())["blocks.1.norm.weight"].add_(1e-4)

    engine.optimizer.step = step


FAULTS = {
    "one_rank": on_gradients(rank1(2.0)),
    "left_out": on_gradients(rank1(0.0)),
    "sum": summed,
    "norm_of_one_rank": norm_of_one_rank,
    "drift": drift,
}

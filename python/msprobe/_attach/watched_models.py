"""Which models belong to an optimizer beside the one that was called first, and what it trains that is watched nowhere."""

from typing import Any

import torch

from ..pytorch.living import LivingOptimizers, living, parameter_ids

_MOST_MODELS = 8  # called by themselves; of more the module that holds them is taken


def all_of(model: torch.nn.Module, optimizer: Any) -> list:
    """The model, and the others that the optimizer trains: the second tower, a head of its own.

    Args:
        model: That was called first.
        optimizer: That trains it. One that steps copies does not say what else it trains.

    Returns:
        Models that have no part in common; the first one first.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        return [model]
    missing = parameter_ids(optimizer) - _ids(model)
    if not missing:
        return [model]
    own = {id(part) for part in model.modules()}
    outer: list = []  # hold the model
    others: list = []
    for (one,) in zip(*living(torch.nn.Module)):
        if id(one) in own or missing.isdisjoint(_ids(one)):
            continue
        (outer if any(part is model for part in one.modules()) else others).append(one)
    inside = {id(part) for one in others for part in one.modules() if part is not one}
    roots = [one for one in others if id(one) not in inside]
    if len(roots) < _MOST_MODELS or not outer:
        return [model, *roots]
    return [min(outer, key=lambda one: sum(1 for _ in one.modules()))]


def left_over(models: list, optimizer: Any) -> int:
    """How many tensors the optimizer trains that are in none of these models."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return 0
    return len(parameter_ids(optimizer) - {key for model in models for key in _ids(model)})


def trained_elsewhere(models: list, alive: LivingOptimizers) -> list:
    """Optimizers of this process that train nothing of these models."""
    own = {key for model in models for key in _ids(model)}
    return [one for one, ids in alive.all() if ids and own.isdisjoint(ids)]


def _ids(model: torch.nn.Module) -> set:
    return {id(parameter) for parameter in model.parameters()}

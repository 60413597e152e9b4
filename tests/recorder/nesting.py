"""Tensors in nested arguments and results."""

import torch


def tensors_of(value, found=None, depth=0):
    """The tensors in nested lists, tuples and dicts, in order."""
    found = [] if found is None else found
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict) and depth < 20:
        for member in value.values():
            tensors_of(member, found, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 20:
        for member in value:
            tensors_of(member, found, depth + 1)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            tensors_of(getattr(value, name), found, depth + 1)
    return found


def replaced(value, change, depth=0):
    """The same nesting with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth > 20 or isinstance(value, torch.Size):
        return value
    if isinstance(value, dict) and type(value).__module__ in ("builtins", "collections"):
        return type(value)((k, replaced(v, change, depth + 1)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(v, change, depth + 1) for v in value))
    if type(value) in (list, tuple):
        return type(value)(replaced(v, change, depth + 1) for v in value)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        members = {n: replaced(getattr(value, n), change, depth + 1) for n in value.__dataclass_fields__}
        return type(value)(**members)
    return value

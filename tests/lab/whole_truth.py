"""Which op makes two recorded runs of a model differ: by hand, from both dumps (whole_models.py)."""

import json
from pathlib import Path

import torch


def dump_of(folder):
    (path,) = Path(folder).rglob("dump.json")
    return path, json.loads(path.read_text())["data"]


def outputs(op, folder):
    """The results of an op that are tensors, in order."""
    found, todo = [], [op.get("output")]
    while todo:
        value = todo.pop(0)
        if isinstance(value, list):
            todo = value + todo
        elif isinstance(value, dict) and "data_name" in value:
            found.append(torch.load(folder / value["data_name"], weights_only=True))
    return found


def common(whole, part, front, batch):
    """The elements that both have: those in front, or behind `front` new ones. `batch`: rows that a first dimension may hold together.

    A tensor of one dimension has positions, whose number may be a multiple of the batch by chance.
    """
    sizes = whole.shape[:1] + part.shape[:1]
    if (
        batch
        and whole.dim() > 1
        and part.dim() > 1
        and sizes[0] != sizes[1]
        and all(size % batch == 0 for size in sizes)
    ):
        whole, part = whole.unflatten(0, (batch, -1)), part.unflatten(0, (batch, -1))
    for dim in range(whole.dim()):
        size = min(whole.shape[dim], part.shape[dim])
        if whole.shape[dim] == part.shape[dim]:
            continue
        whole = whole.narrow(dim, 0, size)
        part = part.narrow(dim, front if part.shape[dim] > size else 0, size)
    return whole, part


def first_difference(whole, part, front=0, batch=0):
    """Name of the first op whose result has other bits, or None.

    Raises:
        ValueError: When the two runs do not call the same functions.
    """
    (path, ours), (other, theirs) = dump_of(whole), dump_of(part)
    if list(ours) != list(theirs):
        raise ValueError(f"{whole} and {part} call different functions")
    for name, op in ours.items():
        pairs = zip(
            outputs(op, path.parent / "dump_tensor_data"), outputs(theirs[name], other.parent / "dump_tensor_data")
        )
        for a, b in pairs:
            if a.dim() != b.dim():
                raise ValueError(f"{name} has results of {a.dim()} and {b.dim()} dimensions")
            a, b = common(a, b, front, batch)
            if not torch.equal(a, b):
                return name.removesuffix(".forward")
    return None

"""The weights that both frameworks begin with, from a seed by the name of the parameter."""

import zlib

import numpy as np


def _weight(name, shape):
    random = np.random.default_rng([18, zlib.crc32(name.encode())]).standard_normal(shape).astype(np.float32)
    if len(shape) == 1:
        return 1 + 0.1 * random if name.endswith("weight") else 0.1 * random
    return (random / np.sqrt(4 if "embed" in name else np.prod(shape[1:]))).astype(np.float32)


def weight_of(module, name, shape):
    """The weight that is called `name` in this framework: PyTorch's, joined where this network has it so."""
    transposed = name.endswith(getattr(module, "TRANSPOSED", ()) or ("?",))
    shape = tuple(shape)[::-1] if transposed else tuple(shape)
    rows = {name: shape[0]}
    for joined, parts in getattr(module, "JOINED", {}).items():
        if joined in name:
            rows = {name.replace(joined, part): n for part, n in parts.items()}
    values = []
    for part, n in rows.items():
        for own, common in getattr(module, "RENAMED", ()):
            part = part.replace(own, common)
        values.append(_weight(part, (n, *shape[1:])))
    value = np.concatenate(values)
    return np.ascontiguousarray(value.T) if transposed else value

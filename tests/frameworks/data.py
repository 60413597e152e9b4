"""What both frameworks compute with: weights from a seed by the name of the parameter, and a batch for each network."""

import zlib

import numpy as np

SEED = 18


def weight(name, shape):
    """Norms near one, biases small, matrices that keep the size of what they multiply. `name`: PyTorch's."""
    random = np.random.default_rng([SEED, zlib.crc32(name.encode())]).standard_normal(shape).astype(np.float32)
    last = name.rsplit(".", 1)[-1]
    if len(shape) == 1:
        return {"weight": 1 + 0.1 * random, "running_var": 1 + 0.1 * np.abs(random)}.get(last, 0.1 * random)
    size = np.prod(shape[1:]) if "embed" not in name and not name.startswith(("w", "pos", "cls")) else 4
    return (random / np.sqrt(size)).astype(np.float32)


def _numbers(*shape):
    return np.random.default_rng([SEED, *shape]).standard_normal(shape).astype(np.float32)


def _integers(end, *shape, start=0):
    return np.random.default_rng([SEED, end, *shape]).integers(start, end, shape).astype(np.int64)


def _text(words):
    tokens = _integers(words, 2, 11)
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def _bert():
    mask = np.ones((3, 9), np.int64)
    mask[0, 6:] = 0
    mask[2, 4:] = 0
    types = np.zeros((3, 9), np.int64)
    types[:, 5:] = 1
    return _integers(40, 3, 9, start=3), types, mask, np.array([2, 0, 1])


BATCHES = {
    "llama": lambda: _text(50),
    "bert": _bert,
    "conv": lambda: (_numbers(4, 3, 16, 16), np.array([0, 4, 2, 1])),
    "gru": lambda: (_integers(30, 3, 5), np.array([3, 0, 2])),
    "moe": lambda: _text(40),
    "vit": lambda: (_numbers(2, 3, 16, 16), np.array([5, 2])),
    "fused_attention": lambda: _text(45),
    "lora": lambda: (_integers(40, 3, 7), _numbers(3, 6)),
    # Written after the rules were made.
    "encoder_decoder": lambda: (_integers(44, 2, 7), _integers(44, 2, 6)),
    "unet": lambda: (_numbers(2, 3, 8, 8), _numbers(2, 3, 8, 9)[..., :8].copy()),
    "mixer": lambda: (_numbers(2, 3, 16, 16), np.array([5, 2])),
    "recommender": lambda: (_integers(40, 3, 3), _numbers(3, 6)),
    # Written after these, too.
    "tagger": lambda: (_integers(30, 3, 5), _integers(6, 3, 5)),
    "segmenter": lambda: (_numbers(2, 3, 8, 8), (_numbers(2, 1, 8, 8) > 0).astype(np.float32)),
    "qwen": lambda: _text(50),
    "dit": lambda: (_numbers(2, 3, 8, 8), _integers(60, 2), _integers(10, 2), _numbers(1, 2, 3, 8, 8)[0]),
}
NETWORKS = tuple(BATCHES)


def batch(network):
    return BATCHES[network.removesuffix("_fused")]()

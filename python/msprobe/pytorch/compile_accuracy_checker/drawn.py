"""The random numbers that a compiled kernel draws on the CPU: Philox 4x32-10, of a seed and the place of the element."""

import math

import torch

from .reference import needed

_LOW = 0xFFFFFFFF
_FACTORS, _STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_ROUNDS, _SCALE = 10, 4.6566127342e-10


def _product(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and the lower 32 bits of a product, by halves: int64 has no room for the whole."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    middle = (low >> 16) + high
    return middle >> 16, ((middle << 16) | (low & 0xFFFF)) & _LOW


def _numbers(seed: int, size: list, offset: int) -> list:
    """Two numbers in [0, 1) for each element, float32."""
    count = math.prod(size)
    zero = torch.zeros(count, dtype=torch.int64)
    state = [(torch.arange(count) + offset) & _LOW, zero, zero, zero]
    key = [seed & _LOW, 0]
    for _ in range(_ROUNDS):
        (upper, lower), (upper2, lower2) = _product(state[0], _FACTORS[0]), _product(state[2], _FACTORS[1])
        state = [upper2 ^ state[1] ^ key[0], lower2, upper ^ state[3] ^ key[1], lower]
        key = [(k + step) & _LOW for k, step in zip(key, _STEPS)]
    return [((word & 0x7FFFFFFF).float() * _SCALE).reshape(size) for word in state[:2]]


def numbers(how: str, seed: int, size: list, offset: int = 0) -> torch.Tensor:
    """What Inductor's `rand` or `randn` gives; of `randn` up to the rounding of the logarithm.

    Args:
        how: "rand" or "randn".
        seed: Its seed, of which the lower 32 bits count.
        size: Of the result.
        offset: Where the numbers begin.

    Returns:
        Numbers, float32; of "rand" in [0, 1).
    """
    first, second = _numbers(seed, size, offset)
    if how == "rand":
        return first
    return ((-2 * (1 - first).log().double()).sqrt() * (2 * math.pi * (1 - second).double()).cos()).float()


def drawn(graph: torch.fx.Graph, wanted: str, known: dict) -> dict:
    """The random numbers that a node needs, as far as their seeds are known.

    Args:
        graph: The FX graph.
        wanted: Name of the node.
        known: {name: value} of nodes that are known.

    Returns:
        {name: numbers} of the nodes that draw them.
    """
    found = {}
    for node in needed(graph, wanted, known):
        if str(node.target) != "prims.inductor_random.default":
            continue
        size, look_up = node.args[:2]
        seeds = (
            known.get(look_up.args[0].name) if str(look_up.target).startswith("prims.inductor_lookup_seed") else None
        )
        if seeds is not None and seeds.device.type == "cpu" and node.args[2] in ("rand", "randn"):
            seed = int(seeds[look_up.args[1]])
            found[node.name] = numbers(node.args[2], seed, size, node.kwargs.get("offset", 0))
    return found

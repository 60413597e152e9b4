"""Fills memory that nobody has written, each side of a pair in another way: what is read of it differs, or is NaN."""

import ctypes

import torch

_M_PERTURB = -6  # of mallopt(): each byte of fresh memory is 0xFF but for these bits
_LARGE = 0x85  # then floats are 3e35, in float32 and bfloat16


def filled_with_large(make):
    """Wraps a maker of layouts.py: memory holds large numbers from then on."""

    def made(rank, world):
        ctypes.CDLL(None).mallopt(_M_PERTURB, _LARGE)
        return make(rank, world)

    return made


def filled_with_nan(make):
    """The same with NaN, as torch itself fills memory where it is told to be deterministic."""

    def made(rank, world):
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        return make(rank, world)

    return made

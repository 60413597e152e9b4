"""Tells the recorder that what it records is PyTorch."""

import functools
import os

import torch

from .. import _core
from . import device_stats, odd_values, unwritten
from .later_use import is_used_later


@functools.cache
def init() -> None:
    """Before all else; once, for the recorder, the monitor and whoever has hooks ask for it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _core.init("torch", torch, odd_values.describe, odd_values.describe_tensor, package + os.sep)
    _core.set_used_later(is_used_later)
    device_stats.set_up()
    unwritten.set_up()

"""Calls of a training that are checked while it runs: `msprobe acc_check --online` on the other side."""

from .feed import Feed
from .settings import Settings

__all__ = ["Feed", "Settings"]

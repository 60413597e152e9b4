"""Comparing MindSpore dumps: `from msprobe.mindspore import compare`. Their capture is not part of this version."""

from msprobe._compare import CompareException, compare, compare_distributed

__all__ = ["CompareException", "compare", "compare_distributed"]


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        f"msprobe.mindspore has no {name}: this version compares MindSpore's dumps ({', '.join(__all__)}) and does not make any"
    )

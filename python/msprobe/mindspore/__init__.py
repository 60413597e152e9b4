"""Compares MindSpore dumps: `from msprobe.mindspore import compare`. Recording them is not part of this version."""

from typing import NoReturn

from msprobe._compare_result import CompareException, CompareResult

from .compare.distributed_compare import ms_compare_distributed as compare_distributed
from .compare.ms_compare import ms_compare as compare

__all__ = ["CompareException", "CompareResult", "compare", "compare_distributed"]


def __getattr__(name: str) -> NoReturn:
    """Explains that a name of mindstudio-probe is not available.

    Args:
        name: The missing name.

    Raises:
        AttributeError: For names that begin with two underscores, which Python itself looks up.
        ImportError: For all others.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        f"msprobe.mindspore has no {name}: this version compares MindSpore's dumps (compare, compare_distributed) but does "
        "not record them: record with mindstudio-probe in an environment of its own"
    )

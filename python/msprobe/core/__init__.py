"""Where mindstudio-probe has what serves both frameworks."""

from __future__ import annotations

from typing import Any

__all__ = ["SingleComparator", "SingleSave"]


def __getattr__(name: str) -> Any:
    """Loads the two when they are asked for: they need PyTorch, and ConfigChecker does not.

    Raises:
        AttributeError: There is no such name.
    """
    if name == "SingleComparator":
        from msprobe.core.single_save.single_comparator import SingleComparator

        return SingleComparator
    if name == "SingleSave":
        from msprobe.core.single_save.single_saver import SingleSave

        return SingleSave
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

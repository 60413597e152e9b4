"""The import path of mindstudio-probe."""

from msprobe.pytorch.single_compare import SingleComparator

__all__ = ["SingleComparator"]

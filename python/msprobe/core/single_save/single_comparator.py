"""The import path of the earlier tool."""

from msprobe.pytorch.single_compare import SingleComparator

__all__ = ["SingleComparator"]

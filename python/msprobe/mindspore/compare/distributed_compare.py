"""The import path of mindstudio-probe."""

from msprobe._compare import compare_distributed as ms_compare_distributed

__all__ = ["ms_compare_distributed"]

"""The import path of the earlier tool."""

from msprobe._compare import compare_distributed as ms_compare_distributed

__all__ = ["ms_compare_distributed"]

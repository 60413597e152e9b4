"""The import path of the earlier tool."""

from msprobe._compare import compare_distributed

__all__ = ["compare_distributed"]

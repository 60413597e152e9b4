"""The import path of mindstudio-probe."""

from msprobe._compare import compare_distributed

__all__ = ["compare_distributed"]

"""The import path of mindstudio-probe."""

from msprobe._compare import compare as ms_compare

__all__ = ["ms_compare"]

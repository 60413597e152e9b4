"""The import path of the earlier tool."""

from msprobe._compare import compare as ms_compare

__all__ = ["ms_compare"]

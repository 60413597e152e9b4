"""The import path of the earlier tool."""

from msprobe.pytorch.single_save import SingleSave

__all__ = ["SingleSave"]

"""The import path of mindstudio-probe."""

from msprobe.pytorch.single_save import SingleSave

__all__ = ["SingleSave"]

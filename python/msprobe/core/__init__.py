"""Where mindstudio-probe has what serves both frameworks."""

from msprobe.core.single_save.single_comparator import SingleComparator
from msprobe.core.single_save.single_saver import SingleSave

__all__ = ["SingleComparator", "SingleSave"]

"""msprobe: find where two runs of a model part ways, and where one run goes wrong by itself."""

from ._environment import clash

__version__ = "0.1.0"

if clash():
    raise ImportError(clash())

"""The import path of mindstudio-probe: 8.x has the function as `compare`, 26.x as `pt_compare`."""

from msprobe._compare import compare

pt_compare = compare

__all__ = ["compare", "pt_compare"]

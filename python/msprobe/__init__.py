"""msprobe: find where two runs of a model diverge, and where a single run goes wrong.

`msprobe.pytorch.PrecisionDebugger` records what a script computes. `msprobe.compare` compares two recordings; it needs no
framework and so runs anywhere. The command line does both and more: `msprobe --help`.
"""

from typing import TYPE_CHECKING, Any

from ._environment import clash

if TYPE_CHECKING:
    from ._compare import CompareOptions, compare, compare_distributed
    from ._compare_result import (
        CompareArgumentError,
        CompareException,
        CompareInputError,
        CompareInternalError,
        CompareResult,
    )
    from ._show import ShownPage, show

__version__ = "0.1.0"

__all__ = [
    "CompareArgumentError",
    "CompareException",
    "CompareInputError",
    "CompareInternalError",
    "CompareOptions",
    "CompareResult",
    "ShownPage",
    "__version__",
    "compare",
    "compare_distributed",
    "show",
]

if clash():
    raise ImportError(clash())


def __getattr__(name: str) -> Any:
    """Loads the comparison on first use, so that a training script that only records does not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module 'msprobe' has no attribute {name!r}")
    from . import _compare, _compare_result, _show

    return getattr(next(room for room in (_compare, _compare_result, _show) if hasattr(room, name)), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

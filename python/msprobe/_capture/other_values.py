"""Values of Python and of NumPy that the recorder cannot read by itself, as dumps of every framework show them.

Nothing here changes a value or calls a method that a user's class defines: attributes are read.
"""

import collections
import decimal
import enum
import fractions
import types
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Optional

MAX_TEXT = 256
_ASCII_TYPES = (int, float, bool, str, complex, type(None))


def class_path(cls: type) -> str:
    """Returns the name of a class with its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


def plain_int(value: Any) -> Optional[int]:
    """Returns the integer that a value stands for, or None."""
    try:
        return int(value)
    except (TypeError, ValueError, RuntimeError):
        return None


class OtherValues:
    """Describes values as {"type": ..., "value": ...}."""

    def __init__(
        self,
        save_array: Callable[[Any, str], Optional[str]],
        as_int: Callable[[Any], Optional[int]] = plain_int,
        texts: Optional[Mapping[type, str]] = None,
        members: tuple = (),
    ) -> None:
        """Takes what a framework adds.

        Args:
            save_array: Saves an array of NumPy under a name without suffix; returns the name of the file, or None.
            as_int: Returns the integer that an index stands for, or None.
            texts: Further classes whose text says all of them, and the type under which it is shown.
            members: Further classes of which members of a set show their text.
        """
        self._save_array = save_array
        self._as_int = as_int
        # Their text, by the function of their own class, says all of them.
        self._texts = {complex: "complex", range: "range", fractions.Fraction: "", decimal.Decimal: "", **(texts or {})}
        self._members = _ASCII_TYPES + members

    def describe(self, value: Any, file: Optional[str]) -> Optional[dict]:
        """Returns the description of a value; None for objects of which only the class is shown."""
        if isinstance(value, slice):
            return {"type": "slice", "value": [self._as_int(v) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        return self._numpy_value(value, file) or _number(value) or self._text(value)

    def _text(self, value: Any) -> Optional[dict]:
        kind = type(value)
        if kind in self._texts:
            return {"type": self._texts[kind] or class_path(kind), "value": str(value)}
        if kind in (bytes, bytearray):
            return {"type": kind.__name__, "value": f"{len(value)} bytes, CRC-32 {zlib.crc32(value):08x}"}
        if kind in (set, frozenset):
            # In an order that is the same in every run.
            members = ", ".join(sorted(self._member(v) for v in value))
            return {"type": kind.__name__, "value": _shortened("{" + members + "}")}
        if kind in (types.FunctionType, types.BuiltinFunctionType, type):
            return {"type": kind.__name__, "value": f"{value.__module__}.{value.__qualname__}"}
        if isinstance(value, collections.deque):
            members = ", ".join(self._member(v) for v in value)
            return {"type": class_path(kind), "value": _shortened("[" + members + "]")}
        return None

    def _member(self, value: Any) -> str:
        return repr(value) if type(value) in self._members else class_path(type(value))

    def _numpy_value(self, value: Any, file: Optional[str]) -> Optional[dict]:
        if not any(cls.__module__.startswith("numpy") for cls in type(value).__mro__):
            return None
        import numpy as np

        if isinstance(value, np.generic):
            return {"type": type(value).__name__, "value": _numpy_scalar(value.item())}
        if not isinstance(value, np.ndarray):
            return None
        array = np.ndarray.view(value, np.ndarray)  # of a subclass: none of its methods
        item = {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": list(array.shape)}
        item.update(dict.fromkeys(("Max", "Min", "Mean", "Norm")))
        if array.size and array.dtype.kind in "biufc":
            item.update(_array_statistics(array))
        name = self._save_array(array, file) if file else None
        if name:
            item["data_name"] = name
        return item


def _number(value: Any) -> Optional[dict]:
    """Reduces enums, and subclasses of numbers and str, to plain values."""
    kind = type(value)
    if isinstance(value, enum.Enum) and not isinstance(value, (int, float, str)):
        return {"type": class_path(kind), "value": value._name_}
    for plain in (int, float, str):
        if isinstance(value, plain):
            convert = {int: int.__int__, float: float.__float__, str: str.__str__}[plain]
            found = convert(value)
            if plain is str:  # half a pair of surrogates cannot be written as UTF-8
                found = found.encode("utf-8", "replace").decode()
            return {"type": kind.__name__, "value": found}
    return None


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def _array_statistics(array: Any) -> dict:
    import numpy as np

    if array.dtype.kind == "c":
        array = np.abs(array.astype(np.complex128))
    item = {"Max": _numpy_scalar(array.max().item()), "Min": _numpy_scalar(array.min().item())}
    if array.dtype.kind != "b":
        with np.errstate(all="ignore"):
            item["Mean"] = float(array.mean(dtype=np.float64))
            item["Norm"] = float(np.linalg.norm(array.astype(np.float64).ravel()))
    return item


def _numpy_scalar(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if type(value).__name__ == "longdouble":
        return float(value)
    return None if type(value) in (bytes, tuple) else str(value)

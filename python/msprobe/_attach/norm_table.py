"""The table of local norms beside saved gradients: one row for each weight, and the global norm."""

import math
import os
import tempfile
from typing import Any, NamedTuple, Optional

from .._capture.log import logger

_COLUMNS = (
    "weight",
    "dtype",
    "shape",
    "local norm (root of the sum of squares)",
    "local norm squared (sum of squares)",
    "local norm before clipping (root)",
)


class NormRow(NamedTuple):
    """A weight and the norm of its gradient on this rank, the loss scale divided out."""

    name: str
    gradient: Any  # of which type and shape are reported
    norm: float
    before_clipping: Optional[float]


def write_table(path: str, rows: list, scale: float) -> bool:
    """Writes the table beside a file of gradients: `grads.safetensors` has `grads_norm.csv`."""
    lines = [",".join(_COLUMNS)]
    for row in rows:
        kind = str(row.gradient.dtype).rpartition(".")[2]
        shape = "x".join(map(str, row.gradient.shape))
        before = "" if row.before_clipping is None else repr(row.before_clipping)
        name = '"' + row.name.replace('"', '""') + '"' if set(row.name) & set(',"\n') else row.name
        lines.append(f"{name},{kind},{shape},{row.norm!r},{row.norm * row.norm!r},{before}")
    total = math.fsum(row.norm * row.norm for row in rows)
    clipped = [row.before_clipping for row in rows if row.before_clipping is not None]
    before = repr(math.sqrt(math.fsum(norm * norm for norm in clipped))) if len(clipped) == len(rows) else ""
    lines.append(f"global norm of this rank,,,{math.sqrt(total)!r},{total!r},{before}")
    lines.append(f"loss scale (divided out),,,{scale!r},,")
    return _write(path[: -len(".safetensors")] + "_norm.csv", "\n".join(lines) + "\n")


def _write(path: str, text: str) -> bool:
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".tmp", dir=os.path.dirname(path))
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o640)
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        logger.error("%s cannot be written (%s): nothing more is saved, the run goes on.", path, error.strerror)
        return False
    return True

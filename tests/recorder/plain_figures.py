"""Max, Min, Mean and Norm of NumPy's elements in float64."""

import math

import numpy as np


def figures_of(values, scalar):
    """Of a flat array; `scalar`: a tensor without dimension has its number four times. Also what bounds depend on."""
    if values.size == 0:
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    with np.errstate(all="ignore"):
        if values.dtype == bool:
            return {"Max": bool(values.any()), "Min": bool(values.all()), "Mean": None, "Norm": None}
        exact = values if values.dtype.kind in "iu" else None
        if values.dtype.kind == "c":
            values = np.abs(values.astype(np.complex128))
        wide = values.astype(np.float64)
        if np.isnan(wide).any():
            nan = float("nan")
            counts = {"nan_count": int(np.isnan(wide).sum())}
            if np.isinf(wide).any():
                counts["inf_count"] = int(np.isinf(wide).sum())
            return {"Max": nan, "Min": nan, "Mean": nan, "Norm": nan, **counts}
        found = {
            "Max": int(exact.max()) if exact is not None else float(wide.max()),
            "Min": int(exact.min()) if exact is not None else float(wide.min()),
            "Mean": float(math.fsum(wide) / wide.size) if np.isfinite(wide).all() else float(wide.mean()),
            "Norm": _norm(wide),
            "mean_abs": float(np.abs(wide).mean()),
            "count": wide.size,
        }
        if np.isinf(wide).any():
            found["inf_count"] = int(np.isinf(wide).sum())
        if scalar:
            found["Mean"] = found["Norm"] = found["Max"]
        return found


def _norm(wide):
    top = float(np.abs(wide).max())
    if not 0 < top < float("inf"):
        return top
    scaled = wide / top
    return float(np.sqrt(np.sum(scaled * scaled)) * top)

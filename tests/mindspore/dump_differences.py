"""Two dump trees of the same script, item by item: mindstudio-probe's and ours."""

import json
import math
import os

import numpy as np

STATISTICS = ("Max", "Min", "Mean", "Norm")


def _near(x, y, rtol):
    if x == y:
        return True
    if isinstance(x, (bool, str)) or isinstance(y, (bool, str)):
        return False
    try:
        p, q = float(x), float(y)
    except (TypeError, ValueError):
        return False
    return (math.isnan(p) and math.isnan(q)) or abs(p - q) <= rtol * max(abs(p), abs(q)) + 1e-7


def _item(path, theirs, ours, rtol, found):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        ours = {k: v for k, v in ours.items() if k not in ("nan_count", "inf_count", "overflow_margin")}
        if set(theirs) != set(ours):
            found.append(f"{path}: keys {sorted(set(theirs) ^ set(ours))}")
        for key in set(theirs) & set(ours):
            if key in STATISTICS and theirs[key] is None:
                continue
            _item(f"{path}.{key}", theirs[key], ours[key], rtol, found)
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            found.append(f"{path}: {len(theirs)} items, ours {len(ours)}")
        for i, (x, y) in enumerate(zip(theirs, ours)):
            _item(f"{path}.{i}", x, y, rtol, found)
    elif not _near(theirs, ours, rtol):
        found.append(f"{path}: {theirs!r}, ours {ours!r}")


def _in_any_order(items):
    """Gradients of a Primitive: mindstudio-probe lists them as they arrive, we as the arguments stand."""
    return sorted(
        items, key=lambda t: (t["shape"], round(t["Norm"] or 0, 4), t.get("data_name", "")) if t else ([], 0, "")
    )


def _load(path):
    with open(path) as file:
        return json.load(file)


def _dump(where, theirs, ours, rtol, found):
    data, own = theirs.pop("data"), ours.pop("data")
    theirs.pop("dump_data_dir", None), ours.pop("dump_data_dir", None)
    _item(where, theirs, ours, rtol, found)
    found += [f"{where}: no entry {name}" for name in data if name not in own]
    found += [f"{where}: extra entry {name}" for name in own if name not in data]
    for name in data:
        if name not in own:
            continue
        x, y = data[name], own[name]
        if name.startswith("Primitive.") and name.endswith(".backward"):
            for side in (x, y):
                for tensor in side["output"]:
                    tensor.pop("data_name", None)
                side["output"] = _in_any_order(side["output"])
        _item(f"{where}:{name}", x, y, rtol, found)


def differences(theirs, ours, rtol=1e-5):
    """Lists what differs; of stacks the names, of arrays the values."""
    found = []
    for place, _, files in sorted(os.walk(theirs)):
        rest = os.path.relpath(place, theirs)
        for file in sorted(files):
            path, own = os.path.join(place, file), os.path.join(ours, rest, file)
            where = f"{rest}/{file}"
            if not os.path.exists(own):
                found.append(f"missing {where}")
            elif file in ("dump.json", "debug.json"):
                _dump(where, _load(path), _load(own), rtol, found)
            elif file == "construct.json":
                _item(where, _load(path), _load(own), rtol, found)
            elif file == "stack.json":
                names = [sorted(n for group in _load(p).values() for n in group[0]) for p in (path, own)]
                if names[0] != names[1]:
                    found.append(f"{where}: names differ by {sorted(set(names[0]) ^ set(names[1]))[:5]}")
            elif file.endswith(".npy") and not (file.startswith("Primitive.") and ".backward." in file):
                x, y = np.load(path), np.load(own)
                same = x.shape == y.shape and x.dtype == y.dtype
                if not same or not np.allclose(x.astype(np.float64), y.astype(np.float64), rtol, 1e-7, equal_nan=True):
                    found.append(f"{where}: array differs ({x.dtype}{x.shape}, ours {y.dtype}{y.shape})")
    return found


if __name__ == "__main__":
    import sys

    result = differences(*sys.argv[1:3])
    print("\n".join(result[:60]))
    print(len(result), "differences")

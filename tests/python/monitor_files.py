"""Compares the csv files that two monitors wrote of the same training."""

import csv
import glob
import os
import re

RELATIVE, ABSOLUTE = 1e-5, 1e-12
MEAN = 2e-6  # of the root mean square: sums of float32 that cancel


def directories(base):
    """Rank -> its directory, below the output directory of a scenario."""
    found = {}
    for path in glob.glob(os.path.join(base, "monitor", "*-rank*-*")):
        found[int(re.search(r"-rank(\d+)-", os.path.basename(path)).group(1))] = path
    return found


def tables(directory):
    """File -> rows, the header first."""
    files = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.csv"))):
        with open(path, encoding="utf-8", newline="") as file:
            files[os.path.basename(path)] = list(csv.reader(file))
    return files


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def _same_cell(a, b, size):
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return a == b
    return x == y or (x != x and y != y) or abs(x - y) <= max(RELATIVE * abs(x), ABSOLUTE, MEAN * size)


def _size_of(header, row):
    """Root mean square of a tensor of which norm and shape are known: what its mean is exact to a part of."""
    if "norm" not in header:
        return 0.0
    count = 1
    for length in re.findall(r"\d+", row[header.index("shape")]):
        count *= int(length)
    return abs(_number(row[header.index("norm")]) or 0.0) / max(count, 1) ** 0.5


def differences(old, new, limit=20):
    """Lines that say what differs between two directories of ranks; cells counted and exact texts counted, too."""
    lines, cells, same_text = [], 0, 0
    if set(old) != set(new):
        lines.append(f"ranks {sorted(old)} and {sorted(new)}")
    for rank in sorted(set(old) & set(new)):
        a, b = tables(old[rank]), tables(new[rank])
        for name in sorted(set(a) ^ set(b)):
            lines.append(f"rank {rank}: {name} only in {'the first' if name in a else 'the second'}")
        for name in sorted(set(a) & set(b)):
            keys = [[row[: 4 if "micro_step" in table[0] else 3] for row in table] for table in (a[name], b[name])]
            if keys[0] != keys[1] or a[name][0] != b[name][0]:
                only = [k for k in keys[0] if k not in keys[1]], [k for k in keys[1] if k not in keys[0]]
                lines.append(f"rank {rank}: {name}: other rows or order: {only[0][:3]} {only[1][:3]}")
                continue
            for x, y in zip(a[name], b[name]):
                for column, (p, q) in enumerate(zip(x, y)):
                    cells += 1
                    same_text += p == q
                    mean = a[name][0][column] == "mean"
                    if not _same_cell(p, q, _size_of(a[name][0], x) if mean else 0.0):
                        lines.append(f"rank {rank}: {name}: {x[:4]} {a[name][0][column]}: {p} and {q}")
    return lines[:limit], cells, same_text

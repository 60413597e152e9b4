"""The cells of `msprobe lab` for the calls of oracle_calls.py, computed by hand: other arithmetic, dimensions that are written down."""

import collections

import numpy as np
import torch
from oracle_calls import BATCH, CASES, DTYPES, LENGTH, tensors

PAD = 8
BITS = {torch.float32: (23, -126), torch.bfloat16: (7, -126), torch.float16: (10, -14), torch.float64: (52, -1022)}


def distance(pairs):
    """(elements that differ, the largest difference in ulp) of pairs of tensors."""
    differ, worst = 0, 0.0
    for got, want in pairs:
        bits, smallest = min(BITS[got.dtype], BITS[want.dtype])
        a, b = got.double().numpy().ravel(), want.double().numpy().ravel()
        largest = np.maximum(np.abs(a), np.abs(b))
        power = np.maximum(np.frexp(largest)[1] - 1, smallest)
        ulp = np.ldexp(1.0, np.where(largest == 0, smallest, power) - bits)
        differ += int((a != b).sum())
        worst = max(worst, float((np.abs(a - b) / ulp).max()))
    return differ, worst


def taken(case, given, places, index):
    """The tensors with these elements of their dimensions alone."""
    out = []
    for tensor, dims in zip(given, places):
        for dim in dims:
            tensor = tensor.index_select(dim, torch.tensor(index))
        out.append(tensor)
    return out


def padded(given, places):
    out = []
    for tensor, dims in zip(given, places):
        for dim in dims:
            extra = list(tensor.shape)
            extra[dim] = PAD
            tensor = torch.cat([tensor, torch.zeros(extra, dtype=tensor.dtype)], dim)
        out.append(tensor)
    return out


def second(t):
    return torch.zeros((*t.shape, 2), dtype=t.dtype).select(-1, 0).copy_(t)


def turned(t):
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.dim() > 1 else t


def cells(case, dtype):
    """{relation: (elements that differ, ulp)}."""
    given = tensors(case, dtype)
    call = case.function
    whole = call(*given)
    out = {"again": distance([(call(*given), whole)] * 3)}
    rows = [() if dim is None else (dim,) for dim in case.rows]

    def batch(parts):
        return distance([(call(*taken(case, given, rows, part)), whole[part]) for part in parts])

    out["row alone"] = batch([[0], [BATCH // 2], [BATCH - 1]])
    out["half batch"] = batch([list(range(BATCH // 2)), list(range(BATCH // 2, BATCH))])
    out["permuted rows"] = batch([list(range(BATCH))[::-1]])
    if case.out_place is not None:
        half = LENGTH // 2
        parts = [list(range(half))] + ([] if case.causal else [list(range(half, LENGTH))])
        out["chunked"] = distance(
            [
                (call(*taken(case, given, case.places, part)), whole.index_select(case.out_place, torch.tensor(part)))
                for part in parts
            ]
        )
    longer = call(*padded(given, case.places))
    out["padded"] = distance([(longer if case.out_place is None else longer.narrow(case.out_place, 0, LENGTH), whole)])
    layouts = []
    for layout in (second, turned):
        layouts += [[layout(t) for t in given], [layout(given[0]), *given[1:]]]
    out["strided"] = distance([(call(*laid), whole) for laid in layouts])
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    out["other threads"] = distance([(call(*given), whole)])
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    out["deterministic"] = distance([(call(*given), whole)])
    torch.use_deterministic_algorithms(False)
    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    out["other dtype"] = distance([(call(*(t.to(other) for t in given)), whole)])
    out["float64"] = distance([(whole, call(*(t.double() for t in given)))])
    return out


def compared(report, dtypes=DTYPES):
    """(cells by hand, cells that are equal, those that differ as text) for the report of `msprobe lab --json`.

    By hand with as many threads as the laboratory had: MKL takes another kernel for a single row where it has one thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(report["threads"])
    try:
        return _compared(report["rows"], dtypes)
    finally:
        torch.set_num_threads(threads)


def _compared(rows, dtypes):
    numbers, found = collections.Counter(), {row["name"].partition(".")[2]: row for row in rows}
    count, equal, apart = 0, 0, []
    for dtype in DTYPES:
        for case in CASES:
            name = f"{case.api}.{numbers[case.api]}"
            numbers[case.api] += 1
            if dtype not in dtypes:
                continue
            row = found[name]
            theirs = {c["relation"]: (c.get("differ"), c.get("ulp")) for c in row.get("cells", ()) if "why" not in c}
            ours = cells(case, dtype)
            for relation in sorted({*ours, *theirs} - {"one ulp"}):  # a sensitivity, of which no element can differ
                count += 1
                if relation in ours and relation in theirs and ours[relation] == theirs[relation]:
                    equal += 1
                else:
                    apart.append(f"{name} {dtype} {relation}: {ours.get(relation)} by hand, {theirs.get(relation)}")
    return count, equal, apart

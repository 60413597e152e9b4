"""What the cells of a row follow from, computed again: the two items of the dumps, and of tensors their files.

Every cell of a table is either that of mindstudio-probe or must be the one that is computed here.
"""

import functools
import json
import math
import re

import numpy as np
from mindspore_cells import STATISTICS, items_of, result_of
from mindspore_set import as_number, same_cell

DIFFS = ("Max diff", "Min diff", "Mean diff", "L2norm diff")
RELATIVE = ("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr")
METRICS = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio")
UNMATCHED = "warning: Bench api/module unmatched."
IGNORED = {"empty", "empty_like", "numpy", "to", "__setitem__", "setitem"}
OP = re.compile(r"(.*?\.(?:forward|backward|parameters_grad)(?:\.\d+)?)\.(.*)")
NAN_INF = "error: There is nan/inf/-inf in the maximum or minimum value of NPU."
POSITIONS = "error: The position of inf or nan in NPU and bench Tensor do not match."


def op_of(item):
    found = OP.match(item)
    return found.groups() if found else (item, "")


def plain_dtype(text):
    return text.removeprefix("torch.").lower()


def dims(shape):
    return [int(n) for n in re.findall(r"\d+", shape) if n != "1"]


def related(a, b):
    """Whether shapes are those of one tensor: with neighbouring dimensions joined, or a matrix and its transpose."""
    if a == b or (len(a) == len(b) == 2 and a == b[::-1]):
        return True
    short, long = sorted((a, b), key=len)
    at = 0
    for size in short:
        part = 1
        while at < len(long) and part < size:
            part *= long[at]
            at += 1
        if part != size:
            return False
    return at == len(long)


def is_tensor(row, side):
    return row[f"{side} Dtype"] not in ("N/A", "None", "") and not row[f"{side} Dtype"].startswith("<class")


def relative_cell(a, b):
    """|a - b| / |b| of two statistics."""
    if a == b:
        return 0.0
    return math.inf if b == 0 else abs((a - b) / b) * 100


def statistics_cells(row):
    """{title: cell}: differences and relative errors of a row with a partner."""
    out = {}
    for of, diff, relative in zip(STATISTICS, DIFFS, RELATIVE):
        a, b = as_number(row[f"NPU {of}"]), as_number(row[f"Bench {of}"])
        if a is None or b is None or math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
            continue
        out[diff] = str(a - b)
        if a != b and b != 0:
            out[relative] = f"{relative_cell(a, b)}%"
        elif a == b:
            out[relative] = "0"
    return out


def norm_ratio(row):
    cell = row["NormRelativeErr"]
    number = as_number(cell)
    return None if number is None or math.isnan(number) else number / 100


def row_messages(row, cross):
    """What is said of an item by itself."""
    if row["Bench Name"] == "N/A":
        return [UNMATCHED] if "Cosine" in row else []
    out = []
    finite = all(math.isfinite(as_number(row[f"Bench {s}"]) or 0) for s in ("max", "min"))
    if finite and any(not math.isfinite(as_number(row[f"NPU {s}"]) or 0) for s in ("max", "min")):
        out.append(NAN_INF)
    if row["Requires_grad Consistent"] == "False":
        out.append("error: The Required_Grad of NPU and Bench are inconsistent")
    both = is_tensor(row, "NPU") and is_tensor(row, "Bench")
    a, b = plain_dtype(row["NPU Dtype"]), plain_dtype(row["Bench Dtype"])
    if a != b and not (cross and (not both or (a[:3] == b[:3] == "int"))):
        out.append("error: The dtype of NPU and Bench are inconsistent.")
    shapes = [row[f"{side} Tensor Shape"] for side in ("NPU", "Bench")]
    if shapes[0] != shapes[1] and not (cross and (not both or related(*map(dims, shapes)))):
        out.append("error: The shape of NPU and Bench are inconsistent.")
    return out


def grown(rows, messages):
    """Rules of statistics about an op: what its outputs are beside its inputs."""
    outputs = [r for r in rows if op_of(r["NPU Name"])[1].startswith("output")]
    inputs = [r for r in rows if r not in outputs]
    worst_in = max((norm_ratio(r) or 0 for r in inputs), default=0)
    worst_out = max((norm_ratio(r) or 0 for r in outputs), default=0)
    for row in outputs:
        if worst_in < 0.1 and (norm_ratio(row) or 0) > 0.5:
            messages[row["NPU Name"]].append("error: The NormRelativeErr of output is greater than 0.5.")
    if outputs and (worst_out > 0.1 if worst_in == 0 else worst_out / worst_in > 10):
        messages[outputs[0]["NPU Name"]].append("warning: The norm relative error of output is 10 times that of input.")


def fallen(rows, messages):
    """Rules of tensors."""
    outputs = [r for r in rows if op_of(r["NPU Name"])[1].startswith("output")]
    inputs = [r for r in rows if r not in outputs]

    def least(of, title):
        return min((n for r in of if (n := as_number(r[title])) is not None), default=None)

    if not outputs:
        return
    first = messages[outputs[0]["NPU Name"]]
    near, out = least(inputs, "One Thousandth Err Ratio"), least(outputs, "One Thousandth Err Ratio")
    if out is not None and (1 if near is None else near) > 0.9 and out < 0.6:
        first.append("error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.")
    near, out = least(inputs, "Cosine"), least(outputs, "Cosine")
    near = 1 if near is None else near
    if out is not None and near > 0.9 and near - out > 0.1:
        first.append("warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1")


def expected_messages(rows, cross):
    """{item: messages} of all rows of one op."""
    messages = {row["NPU Name"]: row_messages(row, cross) for row in rows}
    if op_of(rows[0]["NPU Name"])[0].split(".")[1] in IGNORED:
        return {name: [] for name in messages}
    (fallen if "Cosine" in rows[0] else grown)(rows, messages)
    return messages


# ---- tensors ----------------------------------------------------------------------------------------------------------------


def load(path):
    """A .npy file, or a tensor in a .pt file of the set."""
    if path.suffix == ".npy":
        return np.load(path)
    import torch

    value = torch.load(path, map_location="cpu", weights_only=True)
    return value.detach().float().numpy() if value.dtype == torch.bfloat16 else value.detach().numpy()


def metric_cells(a, b):
    """Metrics of two arrays with as many elements."""
    work = np.result_type(a, b, np.float32)
    one = np.squeeze(a).ndim == 0
    x, y = (v.astype(np.float64).reshape(-1) for v in (a, b))
    bad = ~np.isfinite(x)
    if (bad != ~np.isfinite(y)).any():
        return dict.fromkeys(METRICS, "N/A")
    x, y = np.where(bad, 0, x), np.where(bad, 0, y)
    eps = np.where(y == 0, np.finfo(work).eps, 0)
    error = np.abs((x - y) / (y + eps))
    out = {"MaxAbsErr": np.abs(x - y).max(), "MaxRelativeErr": error.max()}
    if one:
        return out
    norms = np.linalg.norm(x), np.linalg.norm(y)
    out["EucDist"] = np.linalg.norm(x - y)
    out["One Thousandth Err Ratio"] = (error < 1e-3).mean()
    out["Five Thousandths Err Ratio"] = (error < 5e-3).mean()
    if min(norms) > 2.3e-16:
        out["Cosine"] = x @ y / (norms[0] * norms[1])
    elif max(norms) <= 2.3e-16:
        out["Cosine"] = 1.0
    return out


def same_metric(want, got):
    number = as_number(got)  # with twelve decimals
    return same_cell(str(want), got, 1e-5) or (number is not None and abs(float(want) - number) <= 1e-12)


def wrong_metrics(row, target, golden):
    """Titles of the metrics of a row that are not those of its tensors; the weights of layers may be transposed."""
    names = json.loads(row["Data_name"].replace("'", '"'))
    paths = [root.parent / "dump_tensor_data" / name for root, name in zip((target, golden), names)]
    if not all(path.is_file() for path in paths):
        return [] if row["Cosine"] == row["MaxAbsErr"] == "unsupported" else ["Cosine"]
    a, b = map(load, paths)
    if not related(*(dims(str(v.shape)) for v in (a, b))):
        return [t for t in METRICS if row[t] != "shape unmatched"]
    wrong = None
    for other in (b, b.T) if a.shape != b.shape and a.shape == b.shape[::-1] else (b,):
        found = [t for t, want in metric_cells(a, other).items() if not same_metric(want, row[t])]
        wrong = found if wrong is None or len(found) < len(wrong) else wrong
    return wrong


# ---- tables -----------------------------------------------------------------------------------------------------------------


known_items = functools.cache(items_of)  # the set does not change


@functools.cache
def framework_of(dump):
    return json.loads(dump.read_text())["framework"]


def recorded_cells(item, side):
    """What a table has of a tensor of one run."""
    cells = {f"{side} Dtype": item["dtype"], f"{side} Tensor Shape": str(item["shape"])}
    for title, key in zip(STATISTICS, ("Max", "Min", "Mean", "Norm")):
        cells[f"{side} {title}"] = str(item[key])
    return cells


def reference_faults(rows, target, golden):
    """(item, title, what it must be, what it is) of all cells of a table of 26.2.0 that do not follow from the two dumps."""
    items = {"NPU": known_items(target), "Bench": known_items(golden)}
    cross = framework_of(target) != framework_of(golden)
    ops, faults = {}, []
    for row in rows:
        ops.setdefault(op_of(row["NPU Name"])[0], []).append(row)
        want = {}
        for side, known in items.items():
            if row[f"{side} Name"] in known:
                want |= recorded_cells(known[row[f"{side} Name"]], side)
        matched = row["Bench Name"] != "N/A"
        if matched and "Max diff" in row:
            want |= statistics_cells(row)
        faults += [(row["NPU Name"], t, w, row[t]) for t, w in want.items() if not same_cell(w, row[t])]
        if matched and "Cosine" in row:
            faults += [(row["NPU Name"], t, "of its tensors", row[t]) for t in wrong_metrics(row, target, golden)]
    for of_op in ops.values():
        expected = expected_messages(of_op, cross)
        for row in of_op:
            said = json.loads(row["Err_message"])
            if sorted(said) != sorted(expected[row["NPU Name"]]):
                faults.append((row["NPU Name"], "Err_message", expected[row["NPU Name"]], said))
            if row["Result"] != result_of(said):
                faults.append((row["NPU Name"], "Result", result_of(said), row["Result"]))
    return faults

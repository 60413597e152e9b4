"""What the cells of a table of release 8.1.1 follow from, computed again; see mindspore_reference.py."""

import functools
import json
import math
import zlib

from mindspore_cells import STATISTICS, items_of
from mindspore_reference import (
    IGNORED,
    RELATIVE,
    expected_messages,
    framework_of,
    known_items,
    op_of,
    recorded_cells,
    statistics_cells,
    wrong_metrics,
)
from mindspore_set import as_number, same_cell

NO_PARTNER = "No bench data matched."
DOUBLE_CHECK = "Need double check api accuracy."
# As release 8.1.1 has it, which divides by the larger value with its sign.
MOST, SMALLEST = 0.5, 1e-10
known_values = functools.cache(functools.partial(items_of, key_of="value"))


def is_warning(row):
    """Whether a statistic is off by half of the larger one."""
    for of in STATISTICS:
        a, b = as_number(row[f"NPU {of}"]), as_number(row[f"Bench {of}"])
        if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
            continue
        if abs((a - b) / (max(a, b) + SMALLEST)) > MOST:
            return True
    return False


def accuracy(row):
    """The cell "Accuracy Reached or Not" of the metrics of a row."""
    cosine, error = row["Cosine"], row["MaxAbsErr"]
    if cosine == "shape unmatched":
        return "Unmatched"
    if "N/A" in (cosine, error):
        return "No"
    if "unsupported" in (cosine, error):
        return "None"
    cosine, error = (math.nan if v is None else v for v in (as_number(cosine), as_number(error)))
    if (cosine < 0.99 and error > 0.001) or cosine < 0.9 or error > 1:
        return "No"
    return "Yes"


def relative_to_zero(row):
    """Nothing is relative to a statistic of zero."""
    return {title: "N/A" for of, title in zip(STATISTICS, RELATIVE) if as_number(row[f"Bench {of}"]) == 0}


def said_cells(row, messages):
    """What is said of a row: of statistics a warning, of tensors the reasons of 26.2.0."""
    matched = row["Bench Name"] != "N/A"
    if "Max diff" in row:
        warning = matched and is_warning(row)
        return {
            "Result": "Warning" if warning else "" if matched else "N/A",
            "Err_message": DOUBLE_CHECK if warning else "" if matched else NO_PARTNER,
        }
    said = json.dumps(messages, ensure_ascii=False) if messages else ""
    return {"Accuracy Reached or Not": accuracy(row), "Err_message": said if matched else NO_PARTNER}


def checksum_of(name, dump):
    """Of a tensor that of the dump; of another argument the CRC-32 of its text; gradients of parameters are lists of one."""
    item = known_items(dump).get(name) or known_items(dump).get(name + ".0")
    if item:
        return item["md5"] or "N/A"
    value = known_values(dump).get(name)
    return f"{zlib.crc32(str(value['value']).encode()):08x}" if value else "N/A"


def md5_faults(row, dumps):
    """A table of checksums has nothing but these."""
    md5 = [checksum_of(row[f"{side} Name"], dump) for side, dump in dumps.items()]
    same = row["Bench Name"] != "N/A" and md5[0] == md5[1]
    want = {"NPU MD5": md5[0], "BENCH MD5": md5[1], "Result": "pass" if same else "Different"}
    return [(row["NPU Name"], t, w, row[t]) for t, w in want.items() if w != row[t]]


def older_faults(rows, target, golden):
    """(item, title, what it must be, what it is) of all cells of a table of 8.1.1 that do not follow from the two dumps."""
    dumps = {"NPU": target, "Bench": golden}
    items = {side: known_items(dump) for side, dump in dumps.items()}
    cross = framework_of(target) != framework_of(golden)
    ops, faults = {}, []
    for row in rows:
        ops.setdefault(op_of(row["NPU Name"])[0], []).append(row)
        want = {}
        for side, known in items.items():
            if row[f"{side} Name"] in known:
                cells = recorded_cells(known[row[f"{side} Name"]], side)
                want |= {title: cell for title, cell in cells.items() if title in row}
        if row["Bench Name"] != "N/A" and "Max diff" in row:
            want |= statistics_cells(row) | relative_to_zero(row)
        if "NPU MD5" in row:
            faults += md5_faults(row, dumps)
        elif "Cosine" in row and row["Bench Name"] != "N/A":
            faults += [(row["NPU Name"], t, "of its tensors", row[t]) for t in wrong_metrics(row, target, golden)]
        faults += [(row["NPU Name"], t, w, row[t]) for t, w in want.items() if not same_cell(w, row[t])]
    for op, of_op in ops.items():
        if "NPU MD5" in of_op[0]:
            continue
        tensors = "Cosine" in of_op[0] and op.split(".")[1] not in IGNORED
        new = [row | {"Requires_grad Consistent": "True"} for row in of_op]
        messages = expected_messages(new, cross) if tensors else {}
        for row in of_op:
            want = said_cells(row, messages.get(row["NPU Name"]))
            faults += [(row["NPU Name"], t, w, row[t]) for t, w in want.items() if not same_message(w, row[t])]
    return faults


def same_message(want, got):
    """Lists of reasons have no order."""
    if want.startswith("[") and got.startswith("["):
        return sorted(json.loads(want)) == sorted(json.loads(got))
    return want == got

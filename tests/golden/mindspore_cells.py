"""Why a cell of a table differs from that of mindstudio-probe: one class for each row in docs/compatibility.md."""

import json
import re

from mindspore_set import as_number, same_cell

# Class -> the beginning of its row in docs/compatibility.md. Cells of no class are faults of ours.
CLASSES = {
    "pairs": "| MindSpore against PyTorch without a mapping |",
    "alone": "| MindSpore against PyTorch, backward of functions that PyTorch makes of several nodes",
    "no gradient": "| MindSpore against PyTorch, an operand that has no gradient |",
    "dtype and requires_grad": "| rows of MindSpore against PyTorch |",
    "not compared": "| tensor dumps: rows that could not be compared",
    "16 decimals": "| differences of statistics |",
    "null": "| `compare -i compare.json` (8.x): null tensors |",
    "reasons of 8.x": "| `compare -i compare.json` (8.x): `Err_message` |",
    "smallest number of 8.x": "| `compare -i compare.json` (8.x): MaxRelativeErr of elements",
}
CROSS_SENTENCES = {
    "error: The Required_Grad of NPU and Bench are inconsistent",
    "error: The dtype of NPU and Bench are inconsistent.",
}
UNMATCHED = '["warning: Bench api/module unmatched."]'
DOUBLE_CHECK = "Need double check api accuracy."
STATISTICS = ("max", "min", "mean", "l2norm")
# What 8.1.1 says in a line of its own and 26.2.0 does not, or in other words.
SAID_BY_8 = re.compile(
    r"maximum or minimum is nan|maximum relative error exceeds|maximum absolute error of both|No bench data matched\."
    r"|[Tt]he (output|input/parameter)'s |This is type of 0-d tensor|Dtype of NPU and bench tensor do not match"
)


def result_of(messages):
    return "error" if any(m.startswith("error") for m in messages) else "warning" if messages else "pass"


def _message_26(theirs, ours):
    left = [m for m in json.loads(theirs["Err_message"]) if m not in CROSS_SENTENCES]
    if left == json.loads(ours["Err_message"]):
        return "dtype and requires_grad"
    unmatched = theirs["Err_message"] == "[]" and ours["Err_message"] == UNMATCHED and ours["Bench Name"] == "N/A"
    return "not compared" if unmatched else None


def _message_8(theirs, ours):
    lines = theirs["Err_message"].strip().splitlines()
    kept = [line for line in lines if not SAID_BY_8.match(line)]
    mine = ours["Err_message"]
    if mine.startswith('["'):  # the reasons of 26.2.0
        json.loads(mine)
        mine = ""
    return "reasons of 8.x" if kept == mine.splitlines() else None


def _is_null(row, side):
    return row[f"{side} max"].strip() in ("None", "nan", "N/A")


def _difference(title, a, b, theirs, ours):
    """Of two statistics: the earlier tool cuts them at the 16th decimal."""
    x, y = as_number(a), as_number(b)
    null = [k for k in ("NPU", "Bench") if _is_null(ours, k)] or ours.get("Bench mean") == "None"
    if null and "Nan" not in (b,) and {a, b} <= {"Nan", "N/A", "0", "Diff", "None"}:
        return "null"
    if x is None or y is None:
        return None
    of = next(
        s for s in STATISTICS if title.lower().startswith(s[:3]) or (s == "l2norm" and title[:4] in ("L2no", "Norm"))
    )
    unit = 2.5e-16 if "diff" in title else 2.5e-14 / max(abs(as_number(ours[f"Bench {of}"]) or 0), 1e-300)
    return "16 decimals" if abs(x - y) <= unit * (1 + 1e-6) else None


def cell_class(title, theirs, ours):
    """The class of a cell that differs in a row with the same partner; None: a fault."""
    a, b = theirs[title].strip(), ours[title].strip()
    new = "Bench Requires_grad" in ours
    if title == "Requires_grad Consistent":
        unknown = "N/A" in (ours["NPU Requires_grad"], ours["Bench Requires_grad"])
        return "dtype and requires_grad" if (a, b) == ("False", "True") and unknown else None
    if title == "Err_message":
        return _message_26(theirs, ours) if new else _message_8(theirs, ours)
    if title == "Result" and new:
        return _message_26(theirs, ours) if b == result_of(json.loads(ours["Err_message"])) else None
    if title[:4] in ("NPU ", "Benc") and title.split()[-1] in STATISTICS:
        return "null" if (a, b) == ("nan", "None") else None
    if title == "MaxRelativeErr" and "Cosine" in ours:
        x, y = as_number(a), as_number(b)
        return "smallest number of 8.x" if x and y and abs(x / y / 2**29 - 1) < 1e-6 else None
    if title.endswith("diff") or title.endswith("RelativeErr"):
        return _difference(title, a, b, theirs, ours)
    return None


def items_of(dump, key_of="shape"):
    """Name of an item -> what dump.json has of it, for tensors; of arguments that are none with `key_of` "value"."""
    out = {}

    def add(name, value):
        if isinstance(value, list):
            for i, one in enumerate(value):
                add(f"{name}.{i}", one)
        elif isinstance(value, dict) and key_of in value:
            out[name] = value
        elif isinstance(value, dict):
            for key, one in value.items():
                add(f"{name}.{key}", one)

    places = {"input_args": ".input", "input_kwargs": ".input", "input": ".input", "output": ".output"}
    for op, data in json.loads(dump.read_text())["data"].items():
        for key, value in data.items():
            add(
                op + places.get(key, f".{key}" if key == "parameters" else ""),
                value if key in (*places, "parameters") else {key: value},
            )
    return out


def golden_cells(item):
    """What a table has of a tensor of the golden run."""
    cells = {"Bench Dtype": item["dtype"], "Bench Tensor Shape": str(item["shape"])}
    for title, key in zip(STATISTICS, ("Max", "Min", "Mean", "Norm")):
        cells[f"Bench {title}"] = str(item[key])
    return cells


def wrong_golden_cells(row, items):
    """Cells of a row that are not those of its partner."""
    item = items.get(row["Bench Name"])
    if item is None:
        return []
    cells = golden_cells(item)
    wrong = [t for t, want in cells.items() if t in row and not same_cell(want, row[t])]
    for of, title in zip(STATISTICS, ("Max diff", "Min diff", "Mean diff", "L2norm diff")):
        a, b = as_number(row[f"NPU {of}"]), as_number(row[f"Bench {of}"])
        if title in row and a is not None and b is not None and not same_cell(str(a - b), row[title]):
            wrong.append(title)
    return wrong


def agrees(row):
    """Whether a pair of the same weights has the same values, to what two frameworks round."""
    scale = max((abs(as_number(row[f"Bench {s}"]) or 0) for s in STATISTICS), default=0)
    for of in STATISTICS:
        a, b = as_number(row[f"NPU {of}"]), as_number(row[f"Bench {of}"])
        if a is not None and b is not None and abs(a - b) > 1e-4 * scale + 1e-7:
            return False
    return True

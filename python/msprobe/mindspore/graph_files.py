"""What graphs dumped of their Cells becomes the files of a step: dump.json, construct.json, stack.json and dump_tensor_data.

Tensors come as `Cell.fc.Dense.forward.input.0_float32_7.npy`, where 7 grows with every file, and
`_in` stands before the type where graph_modes.py asks for what is given; the statistics of a step as tables of
MindSpore's own dump, `rank_r/Net/0/{step}/statistic.csv`. Needs no MindSpore.
"""

import csv
import json
import os
import re
import time
from collections import defaultdict
from typing import Any, NamedTuple, Optional

import numpy as np

from .._capture.files import make_directory, write_file

_MARK = "dump_tensor_data"
_FILE = re.compile(
    r"(?P<item>Cell\..+\.(?:forward|backward)\.(?:input|output)\.\d+)(?:_in)?_(?P<dtype>[a-z]+\d*)_(?P<id>\d+)\.npy"
)
_ITEM = re.compile(r"(?P<cell>Cell\..+)\.(?P<direction>forward|backward)\.(?P<side>input|output)\.(?P<place>\d+)")
_STATISTICS = (("Max", "Max Value"), ("Min", "Min Value"), ("Mean", "Avg Value"), ("Norm", "L2Norm Value"))
_DTYPES = {"bfloat": "BFloat", "bool": "Bool", "complex": "Complex", "float": "Float", "int": "Int", "uint": "UInt"}


class Dumped(NamedTuple):
    """One tensor of one call, in the order in which they were dumped."""

    item: str  # Cell.fc.Dense.forward.input.0
    tensor: dict  # as in dump.json
    path: str = ""  # of its elements


def directory_of(dump_path: str) -> str:
    """Returns where TensorDump writes; in tables its rows are known by the last part."""
    rank = os.environ.get("RANK_ID", "")
    return os.path.join(os.path.abspath(dump_path), "cells", f"rank{rank}", _MARK)


def collect(dump_path: str, step_directory: str, task: str, level: str, seconds: float = 60) -> int:
    """Makes the files of a step of what was dumped since the last one.

    Args:
        dump_path: That of the configuration.
        step_directory: `{dump_path}/step{n}/rank{r}`.
        task: `tensor` or `statistics`.
        level: For dump.json.
        seconds: How long files are waited for, which threads of MindSpore write.

    Returns:
        The number of entries.
    """
    read = _tensors if task == "tensor" else _rows
    source = directory_of(dump_path) if task == "tensor" else os.path.abspath(dump_path)
    _wait(source, seconds)
    entries, moves = _entries(read(source))
    data_directory = os.path.join(step_directory, _MARK) if moves else None
    for old, name in moves:
        make_directory(data_directory)
        os.replace(old, os.path.join(data_directory, name))
    dump = {"task": task, "level": level, "framework": "mindspore", "dump_data_dir": data_directory, "data": entries}
    construct = {name: _parent(name, entries) for name in entries}
    stack = {str(i): [[name], []] for i, name in enumerate(entries)}
    for name, content in (("dump.json", dump), ("construct.json", construct), ("stack.json", stack)):
        write_file(os.path.join(step_directory, name), json.dumps(content, indent=1).encode())
    return len(entries)


def _tensors(directory: str) -> list:
    found = []
    for entry in os.scandir(directory) if os.path.isdir(directory) else ():
        name = _FILE.fullmatch(entry.name)
        if name is None:
            continue
        tensor = {"type": "mindspore.Tensor", "dtype": _dtype(name["dtype"]), **_described(np.load(entry.path))}
        found.append((int(name["id"]), Dumped(name["item"], tensor, entry.path)))
    return [dumped for _, dumped in sorted(found, key=lambda pair: pair[0])]


def _described(array: np.ndarray) -> dict:
    values = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if array.dtype == bool and array.size:
        values.update(Max=bool(array.max()), Min=bool(array.min()))
    elif array.size:
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        size = abs(wide) if array.dtype.kind == "c" else wide
        numbers = (size.max(), size.min(), size.mean(), np.linalg.norm(size.ravel()))
        values = dict(zip(values, map(float, numbers)))
        if array.dtype.kind in "iu":
            values.update(Max=int(array.max()), Min=int(array.min()))
    return {"shape": list(array.shape), **values}


def _rows(dump_path: str) -> list:
    """Reads and removes the tables of this process's rank."""
    rows = []
    for table in _tables(dump_path):
        with open(table, newline="", encoding="utf-8") as file:
            rows.extend(csv.DictReader(file))
        os.unlink(table)
    found = []
    for row in sorted(rows, key=lambda row: int(row.get("Timestamp") or 0)):
        # Of what goes into TensorDump, slot 0 is the path.
        item = _item_of(row.get("Op Name") or "")
        if row.get("Slot") == "0" or item is None:
            continue
        values = {name: _number(row.get(column)) for name, column in _STATISTICS}
        shape = [int(part) for part in re.findall(r"\d+", row.get("Shape") or "")]
        tensor = {"type": "mindspore.Tensor", "dtype": _dtype(row.get("Data Type") or ""), "shape": shape, **values}
        found.append(Dumped(item, tensor))
    return found


def _tables(dump_path: str) -> list:
    root = os.path.join(dump_path, f"rank_{os.environ.get('RANK_ID') or 0}", "Net")
    return sorted(
        os.path.join(place, name) for place, _, names in os.walk(root) for name in names if name == "statistic.csv"
    )


def _item_of(name: str) -> Optional[str]:
    """Returns the item in the name of an operator, where the path stands with other separators."""
    at = name.rfind(_MARK)
    if at < 0:
        return None
    item = name[at + len(_MARK) + 1 :].split("|")[0].replace("-", ".")
    return item if _ITEM.fullmatch(item) else None


def _number(text: Optional[str]) -> Any:
    try:
        return float(text or "")
    except ValueError:
        return None


def _dtype(text: str) -> str:
    word = re.match(r"[a-z]+", text.lower())
    return _DTYPES.get(word[0], text) + text[word.end() :] if word else text


def _entries(dumped: list) -> tuple[dict, list]:
    """Returns entries by name, and where the files of their tensors belong."""
    counts: dict = defaultdict(int)
    entries: dict = {}
    moves = []
    for one in dumped:
        parts = _ITEM.fullmatch(one.item)
        call, counts[one.item] = counts[one.item], counts[one.item] + 1
        name = f"{parts['cell']}.{parts['direction']}.{call}"
        forward = parts["direction"] == "forward"
        empty: dict = {"input_args": [], "input_kwargs": {}, "output": []} if forward else {"input": [], "output": []}
        entry = entries.setdefault(name, empty)
        items = entry["input_args" if forward and parts["side"] == "input" else parts["side"]]
        place = int(parts["place"])
        items.extend([None] * (place + 1 - len(items)))
        items[place] = one.tensor
        if one.path:
            one.tensor["data_name"] = f"{name}.{parts['side']}.{place}.npy"
            moves.append((one.path, one.tensor["data_name"]))
    return entries, moves


def _parent(name: str, entries: dict) -> Optional[str]:
    """Returns the innermost entry whose Cell holds this one, of the same call where it has as many."""
    path, _, direction, call = name.rsplit(".", 3)
    best: tuple = (0, None)
    for other in entries:
        other_path, _, other_direction, other_call = other.rsplit(".", 3)
        around = path.startswith(f"{other_path}.") and other_direction == direction
        if around and (len(other_path), other_call == call) > (best[0], False) and other_call in (call, "0"):
            best = (len(other_path), other)
    return best[1]


def _wait(directory: str, seconds: float) -> None:
    """Returns when no file has come for a while."""
    until, before = time.monotonic() + seconds, -1
    while time.monotonic() < until:
        now = sum(len(names) for _, _, names in os.walk(directory))
        if now == before:
            return
        before = now
        time.sleep(0.2)

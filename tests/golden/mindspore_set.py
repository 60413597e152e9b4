"""The MindSpore golden set: where it is, and how its tables are held against ours."""

import csv
import json
import math
import os
import re
from pathlib import Path

import openpyxl
from graph_cases import REPO, missing, run, unpack_into

csv.field_size_limit(1 << 30)


def mindspore_set():
    """The unpacked set (data/, expected/ and truth/)."""
    named = os.environ.get("MSPROBE_MINDSPORE_GOLDEN")
    for place in (
        [Path(named)] if named else [REPO.parent / "shared" / "golden", REPO.parent.parent / "shared" / "golden"]
    ):
        if (place / "truth").is_dir():
            return place
        if (place / "mindspore.tar.xz").is_file():
            return unpack_into(place / "mindspore.tar.xz", "mindspore_set")
    missing("the MindSpore golden set is absent; set MSPROBE_MINDSPORE_GOLDEN to its directory")
    return None


def case_names():
    return {p.parent.name for p in (mindspore_set() / "expected").glob("*/case.json")}


def run_case(name, out, folder="expected", check=True, drop=()):
    """The root of the set and what became of a case's command; `drop`: options with their value that are left out."""
    root = mindspore_set()
    words = json.loads((root / folder / name / "case.json").read_text())["argv"][1:]
    for option in drop:
        at = words.index(option)
        del words[at : at + 2]
    return root, run([w.replace("@OUT", str(out)) for w in words], cwd=root, check=check, env={"MSPROBE_PLAIN": "1"})


def blank_time(name):
    # Nanoseconds first: a stamp of seconds may stand within their 19 digits.
    name = re.sub(r"(?<!\d)20\d{12}(?!\d)", "TIME", re.sub(r"diff_analyze_\d{15,}", "diff_analyze_TIME", str(name)))
    return name.replace("/home/u/runs/pack/public/", "").replace(str(mindspore_set()) + "/", "")


def files(folder):
    folder = Path(folder)
    return {blank_time(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}


def read_table(path):
    """Rows of texts."""
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path, read_only=True)
        return [["" if c is None else str(c) for c in row] for sheet in book for row in sheet.values]
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.reader(f))


def as_number(cell):
    try:
        return float(cell.rstrip("%"))
    except ValueError:
        return None


def same_cell(want, got, relative=1e-6):
    if want == got or blank_time(want) == blank_time(got) or {want, got} == {"None", "N/A"}:
        return True
    a, b = as_number(want), as_number(got)
    if a is None or b is None:
        return False
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= relative * max(abs(a), abs(b)) + 1e-300


def differences(want, got):
    """(row, title, their cell, our cell) of two tables of the same rows, by the titles that both have."""
    titles = [t for t in want[0] if t in got[0]]
    here, there = ({t: rows[0].index(t) for t in titles} for rows in (want, got))
    for number, (a, b) in enumerate(zip(want[1:], got[1:])):
        for title in titles:
            x, y = a[here[title]], b[there[title]]
            if not same_cell(x, y):
                yield number, title, x, y

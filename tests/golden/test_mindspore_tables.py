"""Tables of the MindSpore golden set whose cells differ from those of mindstudio-probe: each cell for a reason that is written down."""

import collections
import functools
import json
import re
import tempfile
from pathlib import Path

import pytest
from graph_cases import REPO
from mindspore_cases import CROSS_8, CROSS_26, OLDER
from mindspore_cells import CLASSES, agrees, cell_class, items_of, wrong_golden_cells
from mindspore_reference import op_of, reference_faults
from mindspore_reference_8 import older_faults
from mindspore_set import as_number, files, mindspore_set, read_table, run_case, same_cell

pytestmark = pytest.mark.deep

MAPPINGS = {"api_mapping_TIME.yaml", "data_mapping_TIME.yaml", "mindspore_tree_TIME.yaml", "pytorch_tree_TIME.yaml"}


def rows_of(path):
    table = read_table(path)
    return [dict(zip(table[0], row)) for row in table[1:]]


def model_of(case):
    words = words_of(case)
    return re.search("_(m[12])_", " ".join(words) + json.dumps(info_of(words))).group(1)


def words_of(case):
    return json.loads((mindspore_set() / "expected" / case / "case.json").read_text())["argv"]


def info_of(words):
    """What the file of -i (8.1.1) names."""
    return json.loads((mindspore_set() / words[words.index("-i") + 1]).read_text()) if "-i" in words else {}


@functools.cache
def found_pairs(model):
    """What stands against what without a mapping, where the two frameworks have equal weights."""
    with tempfile.TemporaryDirectory() as out:
        run_case(f"ms_compare_{model}_cross_stat_none", out)
        (path,) = Path(out).glob("*.csv")
        return {row["NPU Name"]: row for row in rows_of(path)}


def call_of(item):
    """ "Tensor.__add__.3.forward" of an item of a function."""
    found = re.match(r"(.*)\.(\d+)\.(forward|backward)\.", item)
    return found.group(2, 3) if found and not item.startswith(("Cell.", "Module.")) else None


def partner_class(case, theirs, ours, items):
    """Why a row has another partner; None: a fault."""
    found = found_pairs(model_of(case)).get(ours["NPU Name"], {}).get("Bench Name", "N/A")
    named = bool({"-am", "-cm"} & set(words_of(case)))
    mine = ours["Bench Name"]
    if mine == "N/A":
        if ours["NPU Tensor Shape"] in ("None", "N/A", "") or ours["NPU max"] == "None":
            return "no gradient"
        numbered = ours["NPU Name"].startswith("Tensor.") and ours["NPU Name"]  # what -am puts against it
        return "alone" if found == "N/A" or (named and numbered and numbered not in items) else None
    return "pairs" if mine == found or (named and call_of(mine) == call_of(ours["NPU Name"])) else None


def golden_items(case):
    words = words_of(case)
    golden = words[words.index("-gp") + 1] if "-gp" in words else info_of(words)["bench_path"]
    return items_of(mindspore_set() / golden)


def judge(case, out):
    """Counts of cells by class, "exact" among them; what has none of them is listed under None."""
    cells, faults = collections.Counter(), []
    want, got = files(mindspore_set() / "expected" / case / "out"), files(out)
    assert set(want) - set(got) == set(), case
    assert set(got) - set(want) <= MAPPINGS, case
    items = golden_items(case) if "cross" in case or case == "ms8_compare_m2_dm" else None
    for name, path in want.items():
        if path.suffix not in (".csv", ".xlsx"):
            continue
        theirs, ours = rows_of(path), rows_of(got[name])
        assert list(theirs[0]) == list(ours[0])
        assert [row["NPU Name"] for row in theirs] == [row["NPU Name"] for row in ours]
        for a, b in zip(theirs, ours):
            why = None
            if a["Bench Name"] != b["Bench Name"]:
                why = partner_class(case, a, b, items)
                faults += [] if why else [(a["NPU Name"], "Bench Name", a["Bench Name"], b["Bench Name"])]
                faults += [(b["NPU Name"], title, "", b[title]) for title in wrong_golden_cells(b, items)]
            for title in a:
                x, y = a[title].strip(), b[title].strip()
                if same_cell(x, y):
                    cells["exact"] += 1
                    continue
                # Of another partner the cells are those of that one.
                of_target = title.startswith("NPU") and title != "NPU_Stack_Info"
                reason = why if why and not of_target else cell_class(title, a, b)
                if reason is None:
                    faults.append((a["NPU Name"], title, x, y))
                cells[reason] += 1
    return cells, faults


def faults_of_table(case, table):
    """Cells of a table that do not follow from the two dumps that it compares."""
    words, root = words_of(case), mindspore_set()
    if case in CROSS_26:
        target, golden = (root / words[words.index(option) + 1] for option in ("-tp", "-gp"))
        return reference_faults(rows_of(table), target, golden)
    info = info_of(words)
    dumps = [root / info[side] for side in ("npu_path", "bench_path")]
    if dumps[0].is_dir():
        dumps = [dump / re.search(r"rank\d+", table.name).group() / "dump.json" for dump in dumps]
    return older_faults(rows_of(table), *dumps)


@pytest.mark.parametrize("case", CROSS_26 + CROSS_8 + OLDER)
def test_every_cell_is_theirs_or_has_its_reason(case, tmp_path):
    run_case(case, tmp_path)
    _, faults = judge(case, tmp_path)
    assert faults == []
    for table in (p for p in tmp_path.iterdir() if p.suffix in (".csv", ".xlsx")):
        assert faults_of_table(case, table) == []  # and whatever its class is, it follows from the two dumps


def test_reasons_are_written_down():
    rows = (REPO / "docs" / "compatibility.md").read_text().splitlines()
    for name, row in CLASSES.items():
        assert any(line.startswith(row) for line in rows), name


@pytest.mark.parametrize("model", ["m1", "m2"])
def test_pairs_of_equal_weights_agree(model):
    """What is found without a mapping: wherever a pair is wrong, its values would tell."""
    pairs = found_pairs(model)
    wrong = [(name, row["Bench Name"]) for name, row in pairs.items() if row["Bench Name"] != "N/A" and not agrees(row)]
    assert wrong == []
    assert sum(row["Bench Name"] != "N/A" for row in pairs.values()) >= {"m1": 550, "m2": 99}[model]
    assert {row["Result"] for row in pairs.values()} <= {"pass", "warning"}


@pytest.mark.parametrize("case", ["ms8_compare_m2_stat", "ms8_compare_m2_cross_tensor", "ms8_compare_m2_md5"])
def test_a_changed_cell_of_8_is_noticed(case, tmp_path):
    run_case(case, tmp_path)
    (table,) = tmp_path.glob("*.xlsx")
    info = info_of(words_of(case))
    dumps = [mindspore_set() / info[side] for side in ("npu_path", "bench_path")]
    rows = [r for r in rows_of(table) if r["Bench Name"] != "N/A" and not r["NPU Dtype"].startswith("<")]
    row = next(r for r in rows if r.get("Max diff", r.get("MaxAbsErr", "1")) not in ("0", "N/A", "unsupported"))
    of_op = [r for r in rows_of(table) if op_of(r["NPU Name"])[0] == op_of(row["NPU Name"])[0]]
    assert older_faults(of_op, *dumps) == []
    for title in set(row) - {"NPU Name", "Bench Name", "NPU_Stack_Info", "Data_name"}:
        number = as_number(row[title])
        other = "other" if number is None else str(number * 1.01 + 1e-3)
        changed = [r | {title: other} if r["NPU Name"] == row["NPU Name"] else r for r in of_op]
        assert older_faults(changed, *dumps) != [], title

"""Cases of the MindSpore golden set whose expected table is no measure: every cell of ours follows from the dumps, and whatever
cell is changed is noticed."""

import collections
import csv
import json
import random
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from mindspore_cells import STATISTICS, cell_class, items_of
from mindspore_reference import (
    METRICS,
    RELATIVE,
    metric_cells,
    op_of,
    plain_dtype,
    reference_faults,
    same_metric,
    statistics_cells,
)
from mindspore_set import as_number, blank_time, files, mindspore_set, read_table, run_case, same_cell

pytestmark = pytest.mark.deep


def argument(case, option):
    words = json.loads((mindspore_set() / "expected" / case / "case.json").read_text())["argv"]
    return mindspore_set() / words[words.index(option) + 1]


def rows_of(path):
    table = read_table(path)
    return [dict(zip(table[0], row)) for row in table[1:]]


def expected_rows(case, name=None):
    tables = {
        n: p for n, p in files(mindspore_set() / "expected" / case / "out").items() if p.suffix in (".csv", ".xlsx")
    }
    return rows_of(tables[name] if name else next(iter(tables.values())))


def our_rows(case, out):
    run_case(case, out)
    (path,) = (p for p in Path(out).iterdir() if p.suffix in (".csv", ".xlsx"))
    return rows_of(path)


REVERSED = [f"ms_compare_{m}_cross_reverse" for m in ("m1", "m2")]
MAPPED = ["ms_compare_m1_ms_dm", "ms_compare_m2_ms_lm"]
LISTED = "ms_compare_m2_list_vs_net"


@pytest.mark.parametrize("case", [*REVERSED, *MAPPED, LISTED])
def test_cells_follow_from_the_dumps(case, tmp_path):
    rows = our_rows(case, tmp_path)
    assert reference_faults(rows, argument(case, "-tp"), argument(case, "-gp")) == []


@pytest.mark.parametrize("case", MAPPED)
def test_mappings_of_one_framework_leave_backward_ops_with_their_own(case, tmp_path):
    """mindstudio-probe counts their calls anew on one side: only these rows have another partner, that of their name."""
    theirs, ours = expected_rows(case), our_rows(case, tmp_path)
    assert [r["NPU Name"] for r in theirs] == [r["NPU Name"] for r in ours]
    moved = 0
    for a, b in zip(theirs, ours):
        if a["Bench Name"] == b["Bench Name"]:
            assert [t for t in a if not same_cell(a[t], b[t])] == [], a["NPU Name"]
        else:
            assert ".backward." in a["NPU Name"] and b["Bench Name"] == b["NPU Name"]
            moved += 1
    assert moved > 30


def change_cells(case, rows):
    """[(title, whether it was noticed)]: of each title a cell of a row with a partner is changed."""
    drawn = random.Random(case)
    roots = argument(case, "-tp"), argument(case, "-gp")
    changes = []
    unjudged = {"NPU Name", "NPU_Stack_Info", "Data_name", "NPU Requires_grad", "Bench Requires_grad"}
    for title in rows[0]:
        if title in unjudged:
            continue
        able = [
            i
            for i, row in enumerate(rows)
            if row["Bench Name"] != "N/A" and not row["NPU Dtype"].startswith("<") and as_number(row["NPU l2norm"])
        ]
        at = drawn.choice(able)
        changed = [dict(row) for row in rows]
        number = as_number(changed[at][title])
        of_op = [r for r in changed if op_of(r["NPU Name"])[0] == op_of(changed[at]["NPU Name"])[0]]
        if title == "Bench Name":
            changed[at][title] = next(r[title] for r in rows if r["Bench max"] not in ("N/A", rows[at]["Bench max"]))
        elif title in ("NPU Dtype", "Bench Dtype"):
            changed[at][title] = "Float64"
        elif "Shape" in title:
            changed[at][title] = "[3, 7, 77]"
        elif title == "Requires_grad Consistent":
            changed[at][title] = "False"
        elif title == "Result":
            changed[at][title] = {"pass": "error"}.get(changed[at][title], "pass")
        elif title == "Err_message":
            changed[at][title] = json.dumps([*json.loads(changed[at][title]), "error: something."])
        elif number is None:
            changed[at][title] = "0.5"
        else:
            changed[at][title] = str(number * 1.01 + 1e-3) + ("%" if "%" in changed[at][title] else "")
        changes.append((title, reference_faults(of_op, *roots) != []))
    return changes


@pytest.mark.parametrize(
    "case",
    [
        "ms_compare_m2_cross_reverse",
        "ms_compare_m2_ms_lm",
        "ms_compare_m2_cross_tensor_lm",
    ],
)
def test_a_changed_cell_is_noticed(case, tmp_path):
    """All cases: publish_mindspore.py."""
    changes = change_cells(case, our_rows(case, tmp_path))
    assert len(changes) > 15
    assert [title for title, noticed in changes if not noticed] == []


@pytest.mark.parametrize("case", ["ms_compare_m1_ranks_da", "ms_compare_m2_ranks_da", "ms_compare_m2_da_file"])
def test_rows_of_diff_analyze(case, tmp_path):
    """mindstudio-probe leaves the option out of account and writes tables: the same rows as in our json."""
    run_case(case, tmp_path)
    for name in files(mindspore_set() / "expected" / case / "out"):
        want = expected_rows(case, name)
        ops = json.loads(files(tmp_path)[name.replace(".csv", ".json")].read_text())
        got = [item for op in ops.values() for item in op["op_items"]]
        assert [r["NPU Name"] for r in want] == [r["NPU Name"] for r in got]
        for a, b in zip(want, got):
            for title in set(a) - {"Result", "Err_message", "NPU_Stack_Info"}:
                assert same_cell(a[title], "None" if b[title] is None else str(b[title])), (a["NPU Name"], title)
            limit = any((as_number(a[t]) or 0) > 50 for t in a if t.endswith("RelativeErr"))
            assert not limit or not ops[op_of(a["NPU Name"])[0]]["is_same"] or ".output" not in a["NPU Name"]


def test_structure(tmp_path):
    """No table there. Ops and items that are only on one side, or of another class, dtype or shape; nothing else."""
    case = "ms_compare_m2_struct"
    rows = our_rows(case, tmp_path)
    sides = [json.loads(argument(case, o).read_text())["data"] for o in ("-tp", "-gp")]
    seen = [{r[f"{s} Name"] for r in rows if r[f"{s} Name"] in d} for s, d in zip(("NPU", "Bench"), sides)]
    assert seen == [set(side) for side in sides]
    assert {r["NPU Name"] for r in rows if r["Difference"] == "target only" and r["NPU Name"] in sides[0]} == (
        set(sides[0]) - set(sides[1]) - {r["NPU Name"] for r in rows if r["Difference"] == "class"}
    )
    words = {"same": ("pass", []), "class": ("warning", ["warning: the class differs."])}
    words |= {"target only": ("error", ["error: only in NPU."]), "golden only": ("error", ["error: only in Bench."])}
    for row in rows:
        assert (row["Result"], json.loads(row["Err_message"])) == words[row["Difference"]], row
        classes = [n.split(".")[-3] if n.startswith("Cell.") else n for n in (row["NPU Name"], row["Bench Name"])]
        if row["Difference"] in ("same", "class") and row["NPU Name"] in sides[0]:
            assert (classes[0] == classes[1]) == (row["Difference"] == "same"), row


# ---- kernels ----------------------------------------------------------------------------------------------------------------


def array_cells(array, side):
    values = array.astype(np.float64)
    stats = (values.max(), values.min(), values.mean(), np.linalg.norm(values.reshape(-1)))
    return {f"{side} {s}": str(v) for s, v in zip(("max", "min", "mean", "l2norm"), stats)}


def test_kernels_with_long_names_follow_from_their_files(tmp_path):
    rows = our_rows("ms_compare_kernel_long", tmp_path)
    for row in rows:
        arrays = [np.load(row[f"{side} Name"]) for side in ("NPU", "Bench")]
        want = {}
        for side, array in zip(("NPU", "Bench"), arrays):
            if array.dtype != bool and array.size and np.isfinite(array).all():
                want |= array_cells(array, side)
            want |= {f"{side} Dtype": str(array.dtype), f"{side} Tensor Shape": str(list(array.shape))}
            row[f"{side} Tensor Shape"] = row[f"{side} Tensor Shape"].replace(",]", "]")
        norm = max(as_number(row["NPU l2norm"]) or 0, 1)
        for title, cell in want.items():
            number = as_number(row[title])
            near = number is not None and title.endswith(("mean", "norm")) and abs(number - float(cell)) <= 1e-6 * norm
            assert near or same_cell(cell, row[title]), (row["NPU Name"], title)
        if arrays[0].shape != arrays[1].shape:
            assert row["Cosine"] == "shape unmatched"
            continue
        if arrays[0].ndim == 0:  # no metric is given
            assert {row[t] for t in METRICS} <= {"", "unsupported"}
            continue
        cells = metric_cells(*arrays)
        wrong = [t for t, c in cells.items() if not same_metric(c, row[t])]
        assert wrong == [], (row["NPU Name"], {t: (cells[t], row[t]) for t in wrong})
        cosine, error = as_number(row["Cosine"]), as_number(row["MaxAbsErr"])
        if cosine is not None and error is not None:
            bad = (cosine < 0.99 and error > 0.001) or cosine < 0.9 or error > 1
            assert row["Accuracy Reached or Not"] == ("No" if bad else "Yes")


def by_kernel(rows):
    """Rows by name and place among those of one name."""
    out = {}
    for row in rows:
        name = (row["NPU Name"] or row["Bench Name"]).split(" ")[0]
        out.setdefault(name, []).append(row)
    for same in out.values():
        same.sort(
            key=lambda row: [
                round(as_number(row[f"{side} {s}"]) or 0, 4) for side in ("NPU", "Bench") for s in STATISTICS
            ]
        )
    return out


def kernel_verdict(row):
    """Of statistics: each counts, in both directions."""
    worst = 0
    for s in ("max", "min", "mean", "l2norm"):
        a, b = (as_number(row[f"{side} {s}"]) for side in ("NPU", "Bench"))
        if a is None or b is None or not np.isfinite([a, b]).all():
            continue
        worst = max(worst, abs(a - b) / (max(abs(a), abs(b)) + 1e-10))
    return worst


def test_statistics_of_kernels_of_8(tmp_path):
    """The same rows in another order, files in columns of their own; verdicts as those of 26.2.0."""
    case = "ms8_compare_kernel_stat"
    theirs, ours = by_kernel(expected_rows(case)), by_kernel(our_rows(case, tmp_path))
    assert set(theirs) == set(ours)
    same = by_kernel(expected_rows("ms_compare_kernel_stat_weight"))
    for name, rows in theirs.items():
        for a, b, c in zip(rows, ours[name], same[name], strict=True):
            for title in set(a) - {"NPU Name", "Bench Name", "Accuracy Reached or Not"}:
                want, got = a[title], b[title]
                if "Shape" in title:
                    want, got = want.strip("()"), got.strip("[]")
                # Differences have signs, and those of a golden statistic that is zero no ratio: as in 26.2.0.
                new = ("diff" in title or want == "0%") and same_cell(c[title], got)
                assert new or same_cell(want, got), (name, title)
            assert b["Accuracy Reached or Not"] == c["Accuracy Reached or Not"] or kernel_verdict(b) > 0.5


def test_statistics_against_files(tmp_path):
    """No table there. Statistics of the csv file beside those of arrays, each from its own place."""
    case = "ms_compare_kernel_stat_vs_npy"
    run_case(case, tmp_path)
    rows = [row for path in sorted(tmp_path.glob("*.csv")) for row in rows_of(path)]
    listed = {}
    for path in argument(case, "-tp").rglob("statistic.csv"):
        with open(path, newline="") as f:
            for line in csv.DictReader(f):
                name = f"{line['Op Name']}.{line['Task ID']}.{line['IO']}.{line['Slot']}"
                values = (line[t] for t in ("Max Value", "Min Value", "Avg Value", "L2Norm Value"))
                listed.setdefault(name, []).append([{"False": "0", "null": "0", "True": "1"}.get(v, v) for v in values])
    judged = 0
    for row in rows:
        if row["NPU Name"]:
            own = [row[f"NPU {s}"] for s in ("max", "min", "mean", "l2norm")]
            assert any(all(same_cell(x, y) for x, y in zip(own, of)) for of in listed[row["NPU Name"]]), row["NPU Name"]
        if not row["Bench CSV File"].endswith(".npy"):
            continue
        array = np.load(row["Bench CSV File"])
        if array.dtype != bool and array.size and np.isfinite(array).all():
            norm = max(as_number(row["Bench l2norm"]) or 0, 1)
            for title, cell in array_cells(array, "Bench").items():
                assert same_cell(cell, row[title], 1e-5) or abs(as_number(row[title]) - float(cell)) <= 1e-5 * norm
        for title, cell in (statistics_cells(row) if row["NPU Name"] and row["Bench Name"] else {}).items():
            if title.endswith("Err"):
                of = STATISTICS[RELATIVE.index(title)]
                cell = "N/A" if as_number(row[f"Bench {of}"]) == 0 else cell
            number = as_number(row[title])
            near = number is not None and abs(number - as_number(cell)) <= 1e-5 * max(1, abs(number))
            assert near or cell == row[title], (title, cell, row[title])
        judged += 1
    assert judged > 100


def test_fuzzy_match_of_8(tmp_path):
    """Every cell N/A there; the runs have the same ops, so ours is the table without the option."""
    theirs, ours = expected_rows("ms8_compare_m2_stat"), our_rows("ms8_compare_m2_fm", tmp_path)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        wrong = [t for t in a if not same_cell(a[t].strip(), b[t].strip()) and cell_class(t, a, b) is None]
        assert wrong == [], (a["NPU Name"], wrong)


# ---- source lines, trends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["ms8_code_mapping_m1", "ms8_code_mapping_npy"])
def test_source_lines_are_those_of_the_graph(case, tmp_path):
    """Of each kernel: its scope, and no line that mindstudio-probe does not have for it or for its graph in the .ir file."""
    theirs = {blank_time(r["File Path"]).split("/")[-1]: r for r in expected_rows(case)}
    ours = our_rows(case, tmp_path)
    text = argument(case, "--ir").read_text()
    assert {r["File Path"].split("/")[-1] for r in ours} == set(theirs)
    marks = re.compile(r"/<~~This line of code.*")
    for row in ours:
        name = row["File Path"].split("/")[-1]
        known = {marks.sub("", line).strip() for line in theirs[name]["Code Stack"].splitlines()}
        own = [s for s in theirs[name]["Scope Name"].splitlines() if re.sub(r"[./\\ ]", "_", s) == name.split(".")[1]]
        assert row["Scope Name"] in own or (row["Scope Name"] == "" and own == []), name
        for line in row["Code Stack"].splitlines():
            plain = marks.sub("", line).strip()
            assert plain in known or plain in text, (name, line)
        if len(own) == 1 and theirs[name]["Scope Name"] == own[0] and row["Scope Name"]:
            assert {marks.sub("", line).strip() for line in row["Code Stack"].splitlines()} == known, name


def trend_rows(path):
    """{(rank, step, target, micro step, metric): statistics}"""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        rows = db.execute(
            "SELECT rank, step, target_name, micro_step, metric_name, norm, max, min, mean FROM trend_data "
            "JOIN monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id)"
        ).fetchall()
    finally:
        db.close()
    return {row[:5]: row[5:] for row in rows}


@pytest.mark.parametrize("case", ["ms_db_m1", "ms_db_m2"])
def test_trends_are_the_values_of_the_dumps(case, tmp_path):
    """Whatever the count of micro steps is: each value is that of an item with this name, and all of theirs are there."""
    run_case(case, tmp_path)
    (got,), (want,) = files(tmp_path).values(), files(mindspore_set() / "expected" / case / "out").values()
    ours, theirs = trend_rows(got), trend_rows(want)
    recorded = collections.defaultdict(set)
    for path in argument(case, "--data").glob("step*/*/dump.json"):
        for name, item in items_of(path).items():
            if plain_dtype(item["dtype"]) in ("float32", "float16", "bfloat16"):
                op, place = op_of(name)
                plain = re.sub(r"\.(forward|backward|parameters_grad)(\.\d+)?$", "", op)
                plain = re.sub(r"\.\d+$", "", plain) if not plain.startswith("Cell.") else plain
                place = place.removesuffix(".0") if "parameters_grad" in op else place
                values = (item[k] for k in ("Norm", "Max", "Min", "Mean"))
                recorded[f"{plain}.{place}"].add(tuple(None if v != v else min(max(v, -1e9), 1e9) for v in values))
    for (_, _, target, _, _), values in ours.items():
        assert values in recorded[target], (target, values)
    assert {key[2] for key in theirs} <= {key[2] for key in ours}
    for key, values in theirs.items():
        assert any(v == values for k, v in ours.items() if k[2] == key[2] and k[4] == key[4]), key


def test_a_network_recorded_as_a_list_has_its_partner(tmp_path):
    """Theirs matches no Cell of `start([net])` with one of `start(net)`; table and graph are to say the same."""
    rows = our_rows(LISTED, tmp_path / "table")
    cells = [row for row in rows if row["NPU Name"].startswith("Cell.")]
    assert len(cells) > 40
    assert all(row["Bench Name"] == row["NPU Name"].replace("Cell.0.", "Cell.", 1) for row in rows)
    run_case("ms_vis_m2_list", tmp_path / "graph")
    (path,) = (p for p in (tmp_path / "graph").iterdir() if p.suffix == ".db")
    with sqlite3.connect(path) as db:
        found = db.execute(
            "SELECT node_name, matched_node_link FROM tb_nodes WHERE data_source='NPU' AND node_name LIKE 'Cell.0.%'"
        ).fetchall()
    assert len(found) > 10
    for name, link in found:
        assert json.loads(link)[-1] == name.replace("Cell.0.", "Cell.", 1)

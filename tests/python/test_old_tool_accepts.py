"""The earlier tool reads our dumps as its own: the same training, recorded by each, compares and draws the same."""

import csv
import itertools
import json
import math
import re
import sqlite3

import pytest
from launch import HERE, run_python


@pytest.fixture(scope="module")
def dumps(old_python, tmp_path_factory):
    """dumps(tool, model, level, run) -> the directory of step 0; each is made once."""
    root = tmp_path_factory.mktemp("dumps")
    made = {}

    def dump(tool, model, level, run):
        key = (tool, model, level, run)
        if key not in made:
            out = root / "_".join(key)
            # The same working directory and script path for both: call stacks name them.
            args = [HERE / "train_scenario.py", model, "--level", level, "--out", out, "--steps", "1"]
            args += ["--problem"] if run == "problem" else []
            options = {"python": old_python, "ours": False} if tool == "theirs" else {}
            run_python(args, cwd=root, **options)
            made[key] = out / "step0" / "rank0"
        return made[key]

    return dump


@pytest.fixture(scope="module")
def old_tool(old_python, tmp_path_factory):
    def run(*args):
        out = tmp_path_factory.mktemp("result")
        done = run_python([old_python.parent / "msprobe", *args, "-o", out], python=old_python, ours=False, cwd=out)
        (result,) = [path for path in out.iterdir() if path.suffix in (".csv", ".db")]
        return result, done.stdout + done.stderr

    return run


# The earlier tool loses the backward of a module whose output is changed in place; ours has it.
IN_PLACE = {
    "conv": {
        "Module.norm.BatchNorm2d.backward.0",
        "Module.left.Conv2d.backward.0",
        "Module.stem.2.ReLU.backward.0",
        "Module.stem.1.BatchNorm2d.backward.0",
    }
}
# There it also shows the gradient of the output in the place of those of the inputs (test_capture_layout.py holds ours
# against autograd).
CHANGED_BY = {"conv": {"Tensor.__iadd__.0.backward", "Functional.relu.0.backward", "Functional.relu.1.backward"}}
# Its nodes at the inputs of modules change the order in which gradients are summed up: its own run has other last bits.
ROUNDED = {"llama"}
# Conversions that return their argument have no node: ours shows that of the argument, the earlier tool its own.
NO_OPS = {"llama": "Tensor.to."}


# Ours records it at the default level, as clamp_; clipping of gradients calls it.
CLAMP = "Torch.clamp."


def without_in_place(names, model, op_of=lambda name: name):
    skipped = IN_PLACE.get(model, set()) | CHANGED_BY.get(model, set())
    return [name for name in names if op_of(name) not in skipped and not op_of(name).startswith(CLAMP)]


def exact_ops(model, data):
    """Names whose values both runs share to the bit: of some models those before the first gradient."""
    if model not in ROUNDED:
        return set(data)
    return set(itertools.takewhile(lambda name: ".backward." not in name and ".parameters_grad" not in name, data))


def op_of_row(row):
    name = re.sub(r"\.(input|output|parameters)\..*$", "", row["NPU Name"])
    return re.sub(r"(\.parameters_grad\.\d+)\..*$", r"\1", name)


def names_of(directory):
    return json.loads((directory / "dump.json").read_text())["data"]


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def count(shape):
    return math.prod(json.loads(shape)) if shape.startswith("[") else 1


def rounding(row, side="NPU"):
    return 1e-5 * max(abs(number(row[f"{side} {key}"]) or 0) for key in ("max", "min", "l2norm"))


def assert_statistics_agree(ours, theirs, side, exact=True):
    """Max and Min to the bit; Norm and Mean as far as single precision carried them in the earlier tool."""
    for key in ("max", "min"):
        mine, other = ours[f"{side} {key}"], theirs[f"{side} {key}"]
        if exact or number(mine) is None:
            assert mine == other, (key, ours, theirs)
        else:
            assert math.isclose(number(mine), number(other), abs_tol=rounding(ours, side)), (key, ours, theirs)
    norm, their_norm = (number(row[f"{side} l2norm"]) for row in (ours, theirs))
    mean, their_mean = (number(row[f"{side} mean"]) for row in (ours, theirs))
    shape = ours["NPU Tensor Shape" if side == "NPU" else "Bench Tensor Shape"]
    # Half precision statistics were rounded to half precision.
    coarse = 1e-2 if "16" in ours["NPU Dtype"] else 1e-5
    if ours["NPU Dtype"].startswith("<class"):
        assert (norm, mean) == (their_norm, their_mean)  # a number of Python stands in all four columns
    elif their_norm is not None and math.isfinite(their_norm):
        assert math.isclose(norm, their_norm, rel_tol=coarse, abs_tol=1e-30), (ours, theirs)
        if their_mean is not None:
            tolerance = coarse * norm / math.sqrt(max(count(shape), 1)) + 1e-30
            assert abs(mean - their_mean) <= tolerance, (ours, theirs)


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def warnings_in(log):
    return [
        line.split("]", 1)[1]
        for line in log.splitlines()
        if "[WARNING]" in line or "[ERROR]" in line
        if "CANN" not in line
    ]


# That the files say the same, of more models and of each level, is shown in tests/conformance.
CASES = [("linears", "L0"), ("llama", "mix"), ("conv", "mix")]


@pytest.mark.parametrize("model, level", CASES)
def test_compare_gives_the_same_rows(dumps, old_tool, model, level):
    results = {}
    for tool in ("ours", "theirs"):
        target, golden = (dumps(tool, model, level, run) / "dump.json" for run in ("problem", "golden"))
        path, log = old_tool("compare", "-tp", target, "-gp", golden)
        results[tool] = rows(path), warnings_in(log)
    (ours, our_warnings), (theirs, their_warnings) = results["ours"], results["theirs"]
    assert our_warnings == their_warnings
    same = ["NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"]
    same += ["NPU Requires_grad", "Bench Requires_grad", "Requires_grad Consistent"]
    ours, theirs = (without_in_place(found, model, op_of_row) for found in (ours, theirs))
    assert [row["NPU Name"] for row in ours] == [row["NPU Name"] for row in theirs]
    assert len(ours) > 30
    exact_names = exact_ops(model, names_of(dumps("ours", model, level, "golden")))
    for our_row, their_row in zip(ours, theirs):
        exact = op_of_row(our_row) in exact_names
        keys = same + ["Max diff", "Min diff"] if exact else same
        assert {key: our_row[key] for key in keys} == {key: their_row[key] for key in keys}
        for side in ("NPU", "Bench"):
            assert_statistics_agree(our_row, their_row, side, exact)
    assert any(float(row["Max diff"]) != 0 for row in ours if number(row["Max diff"]) is not None)


@pytest.mark.parametrize("model, level", [("llama", "mix")])
def test_each_dump_compares_with_the_other_tools(dumps, old_tool, model, level):
    target, golden = (dumps(tool, model, level, "golden") / "dump.json" for tool in ("ours", "theirs"))
    path, log = old_tool("compare", "-tp", target, "-gp", golden)
    assert warnings_in(log) == []
    exact_names = exact_ops(model, names_of(target.parent))
    for row in rows(path):
        if row["NPU Name"].startswith(CLAMP):
            assert row["Bench Name"] == "N/A", row
            continue
        assert row["NPU Name"] == row["Bench Name"], row
        if number(row["Max diff"]) is None:
            continue
        if op_of_row(row) not in exact_names:
            assert abs(number(row["Max diff"])) <= rounding(row), row
        else:
            assert (number(row["Max diff"]), number(row["Min diff"])) == (0, 0), row


def nodes(path, source):
    query = "SELECT node_name, up_node, sub_nodes, node_type FROM tb_nodes WHERE data_source = ? ORDER BY node_order"
    with sqlite3.connect(path) as database:
        found = database.execute(query, (source,)).fetchall()
    return [(name, parent, sorted(json.loads(children or "[]")), kind) for name, parent, children, kind in found]


def without_no_ops(found, prefix):
    return [
        (name, parent if not name.startswith(prefix) else None, [c for c in children if not c.startswith(prefix)], kind)
        for name, parent, children, kind in sorted(found)
    ]


@pytest.mark.parametrize("model", ["linears", "llama"])
def test_graphs_have_the_same_nodes(dumps, old_tool, model):
    results = {}
    for tool in ("ours", "theirs"):
        target, golden = (dumps(tool, model, "mix", run) for run in ("problem", "golden"))
        results[tool] = old_tool("graph_visualize", "-tp", target, "-gp", golden)
    (ours, our_log), (theirs, their_log) = results["ours"], results["theirs"]
    assert warnings_in(our_log) == warnings_in(their_log)
    for source in ("NPU", "Bench"):
        found, expected = nodes(ours, source), nodes(theirs, source)
        assert len(found) > 40
        if model in NO_OPS:
            found, expected = (without_no_ops(side, NO_OPS[model]) for side in (found, expected))
        assert found == expected

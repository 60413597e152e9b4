"""Random dumps compared by the earlier tool and by ours: the same rows, cell by cell.

MSPROBE_EXAMPLES=5000 looks at so many dumps a test, other ones each time.
"""

import csv
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from compare_strategies import pairs_of_dumps, pairs_of_tensor_dumps, renumbered, write_tensors
from graph_cases import run
from hypothesis import HealthCheck, given, settings
from test_compare_golden import METRICS, THOUSANDTH, UNMATCHED, same_metric

csv.field_size_limit(1 << 30)
STATISTICS = ("Max", "Min", "Mean", "Norm")
EXAMPLES = int(os.environ.get("MSPROBE_EXAMPLES", "0"))

# One long-lived process, because importing the tool costs seconds. It reads a line with the arguments of a comparison and
# answers with the folder's only file, or with the error.
SERVER = """
import io, json, os, sys, contextlib
answer = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
from msprobe.pytorch.compare.pt_compare import pt_compare
answer.write("ready\\n")
answer.flush()
for line in sys.stdin:
    target, golden, out, fuzzy = json.loads(line)
    try:
        pt_compare({"npu_path": target, "bench_path": golden, "is_print_compare_log": False}, out, fuzzy_match=fuzzy)
        names = [n for n in os.listdir(out) if n.endswith(".csv")]
        text = os.path.join(out, names[0]) if names else ""
    except Exception as error:
        text = "error: " + type(error).__name__
    answer.write(json.dumps(text) + "\\n")
    answer.flush()
"""


class OldTool:
    def __init__(self, python):
        self.process = subprocess.Popen(
            [str(python), "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ""},
        )
        assert self.process.stdout.readline() == "ready\n"
        self.compared = self.failed = 0

    def table(self, target, golden, out, fuzzy=False):
        """The rows of its table, or None where it gives up."""
        out.mkdir()
        self.process.stdin.write(json.dumps([str(target), str(golden), str(out), fuzzy]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if not answer or answer.startswith("error"):
            self.failed += 1
            return None
        self.compared += 1
        return read(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def old_tool(old_python):
    tool = OldTool(old_python)
    yield tool
    tool.close()
    told = f"the earlier tool made {tool.compared} tables and failed {tool.failed} times"
    # A worker may have been given one test of the module, of 25 examples.
    assert tool.compared > 2 * tool.failed and tool.compared > 15, told


def write(folder, data):
    envelope = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": data}
    folder.mkdir()
    (folder / "dump.json").write_text(json.dumps(envelope))
    return folder / "dump.json"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def our_table(target, golden, out, *options):
    done = run(["compare", "-tp", target, "-gp", golden, "-o", out, *options], check=False)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.csv")
    return read(path)


def same(a, b):
    """Cells as they stand; a number may be written as an integer or as a float where a column has both, its error as 0.0%."""
    if a == b or {a, b} == {"0", "0.0%"}:
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def assert_same(want, got):
    assert want[0] == got[0]
    assert [row[0] for row in want] == [row[0] for row in got]
    for old, ours in zip(want[1:], got[1:]):
        for column, x, y in zip(want[0], old, ours):
            assert same(x, y), (ours[0], column, x, y)


def assert_same_tensors(want, got):
    """As above; metrics within 1e-9, and ours has reasons where a row cannot be compared, and the documented threshold."""
    assert want[0] == got[0]
    assert [row[0] for row in want] == [row[0] for row in got]
    for old, ours in zip(want[1:], got[1:]):
        old, ours = dict(zip(want[0], old)), dict(zip(want[0], ours))
        name = ours["NPU Name"]
        for column in METRICS:
            assert same_metric(old.pop(column), ours.pop(column)), (name, column)
        mine, theirs = json.loads(ours.pop("Err_message")), json.loads(old.pop("Err_message"))
        more = [text for text in mine if text not in theirs]
        assert [text for text in mine if text not in more] == theirs, name
        assert all(text in (THOUSANDTH, UNMATCHED) for text in more), (name, more)
        verdicts = old.pop("Result"), ours.pop("Result")
        assert verdicts[0] == verdicts[1] or more, name
        for column, x in old.items():
            assert same(x, ours[column]), (name, column, x, ours[column])


@pytest.fixture
def scratch():
    """A function that makes an empty directory; all are gone behind the test."""
    root = Path(tempfile.mkdtemp(prefix="hypothesis_compare_"))
    made = []

    def fresh():
        for path in made:
            shutil.rmtree(path)
        made[:] = [root / "run"]
        made[0].mkdir()
        return made[0]

    yield fresh
    shutil.rmtree(root)


def examples(count):
    return settings(
        max_examples=EXAMPLES or count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=not EXAMPLES,
        database=None,
    )


def has_checksums(data):
    return '"md5"' in json.dumps(data)


def check(old_tool, folder, target, golden):
    if not target or not golden or has_checksums(target) != has_checksums(golden):
        return
    a, b = write(folder / "t", target), write(folder / "g", golden)
    want = old_tool.table(a, b, folder / "old")
    if want is None or (has_checksums(target) and "NPU MD5" not in want[0]):
        return  # where only keyword arguments have checksums, it compares statistics
    assert_same(want, our_table(a, b, folder / "ours"))


def test_integers_beside_a_fraction_of_one_run(old_tool, scratch):
    """The earlier tool turns the columns of one run into fractions, and then 0.0 and 0 are two values."""
    zeros = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], **dict.fromkeys(STATISTICS, 0)}
    names = ("Functional.f.0.forward", "Functional.g.0.forward")
    sides = [
        {name: {"input_args": [], "input_kwargs": {}, "output": [item]} for name, item in zip(names, items)}
        for items in ([zeros, {**zeros, "Max": 0.5}], [zeros, {**zeros, "Max": 1}])
    ]
    folder = scratch()
    a, b = write(folder / "t", sides[0]), write(folder / "g", sides[1])
    for i, options in enumerate(([], ["-fm"])):
        ours = our_table(a, b, folder / f"ours{i}", *options)
        first = dict(zip(ours[0], ours[1]))
        assert (first["L2norm diff"], first["NormRelativeErr"], first["Result"]) == ("0", "0", "pass")
    theirs = old_tool.table(a, b, folder / "old")
    first = dict(zip(theirs[0], theirs[1]))
    assert (first["L2norm diff"], first["NormRelativeErr"], first["Result"]) == ("0.0", "inf", "error")


@examples(40)
@given(pair=pairs_of_dumps())
def test_statistics(old_tool, scratch, pair):
    check(old_tool, scratch(), *pair)


@examples(40)
@given(pair=pairs_of_dumps(md5=True))
def test_checksums(old_tool, scratch, pair):
    check(old_tool, scratch(), *pair)


@examples(12)
@given(pair=pairs_of_tensor_dumps())
def test_tensors(old_tool, scratch, pair):
    target, golden = pair
    if not target or not golden:
        return
    folder = scratch()
    a, b = write_tensors(folder / "t", target), write_tensors(folder / "g", golden)
    want = old_tool.table(a, b, folder / "old")
    if want is not None:
        assert_same_tensors(want, our_table(a, b, folder / "ours"))


@examples(15)
@given(pair=pairs_of_dumps(one_sided=False))
def test_fuzzy_matching_undoes_renumbering(old_tool, scratch, pair):
    """Of statistics the earlier tool's own -fm compares nothing; without it, it says what runs of equal numbers give."""
    target, golden = pair
    if not target:
        return
    folder = scratch()
    a, b = write(folder / "t", target), write(folder / "g", golden)
    other = write(folder / "other", renumbered(golden, 7))
    want = old_tool.table(a, b, folder / "old")
    if want is None:
        return
    got = our_table(a, other, folder / "ours", "-fm")
    assert [row[0] for row in want] == [row[0] for row in got]
    for old, ours in zip(want[1:], got[1:]):
        assert (old[1] == "N/A") == (ours[1] == "N/A"), (old, ours)
        for column, x, y in list(zip(want[0], old, ours))[2:]:
            assert same(x, y), (ours[0], column, x, y)

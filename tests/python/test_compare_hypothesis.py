"""Random dumps compared by the earlier tool and by ours: the same rows, cell by cell."""

import csv
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from graph_cases import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

csv.field_size_limit(1 << 30)

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
    target, golden, out = json.loads(line)
    try:
        pt_compare({"npu_path": target, "bench_path": golden, "is_print_compare_log": False}, out)
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
        self.compared = 0

    def compare(self, target, golden, out):
        self.process.stdin.write(json.dumps([str(target), str(golden), str(out)]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def old_tool(old_python):
    tool = OldTool(old_python)
    yield tool
    tool.close()
    assert tool.compared > 60, "the earlier tool made too few tables for these tests to mean something"


# ---- dumps ----------------------------------------------------------------------------------------------------------
# What the earlier tool gets wrong is not drawn: infinities beside text, values it calls malicious, one name twice.
finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: float(f"{v:.6g}"))
statistic = st.one_of(finite, st.sampled_from([0.0, 1.0, float("nan"), float("inf"), float("-inf")]))
dtypes = st.sampled_from(["torch.float32", "torch.float16", "torch.bfloat16", "torch.float64"])
shapes = st.sampled_from([[], [2], [2, 3], [1, 4]])


@st.composite
def tensors(draw, md5):
    shape = draw(shapes)
    item = {"type": "torch.Tensor", "dtype": draw(dtypes), "shape": shape}
    item.update({key: draw(statistic) for key in ("Max", "Min", "Mean", "Norm")})
    item["requires_grad"] = draw(st.booleans())
    if md5:
        item["md5"] = draw(st.sampled_from(["0a0b0c0d", "11111111", "ffeeddcc"]))
    return item


scalars = st.one_of(
    st.integers(-5, 5).map(lambda v: {"type": "int", "value": v}),
    finite.map(lambda v: {"type": "float", "value": v}),
    st.booleans().map(lambda v: {"type": "bool", "value": v}),
    st.sampled_from(["mean", "sum"]).map(lambda v: {"type": "str", "value": v}),
    st.sampled_from([[0, 1, None], [1, 5, 2]]).map(lambda v: {"type": "slice", "value": v}),
    st.sampled_from([[1, 2], [3]]).map(lambda v: {"type": "torch.Size", "value": v}),
    st.none(),
)


def items(md5):
    return st.one_of(tensors(md5), tensors(md5), scalars, st.lists(tensors(md5), min_size=1, max_size=2))


@st.composite
def ops(draw, md5):
    op = {"input_args": draw(st.lists(items(md5), max_size=3)), "input_kwargs": {}}
    op["input_kwargs"] = draw(st.dictionaries(st.sampled_from(["dim", "alpha"]), scalars, max_size=2))
    op["output"] = draw(st.lists(tensors(md5), min_size=1, max_size=2))
    return op


@st.composite
def pairs_of_dumps(draw, md5):
    """Two dumps of one program: most ops in both, most items equal."""
    target, golden = {}, {}
    calls = {}
    for api in draw(
        st.lists(st.sampled_from(["Functional.linear", "Torch.add", "Tensor.mul"]), min_size=1, max_size=4)
    ):
        n = calls[api] = calls.get(api, -1) + 1
        op = draw(ops(md5))
        other = json.loads(json.dumps(op))
        for kind in ("input_args", "output"):
            for i in range(len(op[kind])):
                if draw(st.integers(0, 3)) == 0:
                    other[kind][i] = draw(tensors(md5) if kind == "output" else items(md5))
        where = draw(st.integers(0, 9))
        if where != 0:
            target[f"{api}.{n}.forward"] = op
        if where != 1:
            golden[f"{api}.{n}.forward"] = other
    return target, golden


def write(folder, data):
    envelope = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    folder.mkdir()
    (folder / "dump.json").write_text(json.dumps(envelope))
    return folder / "dump.json"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def same(a, b):
    """Cells as they stand; a number may be written as an integer or as a float where a column has both."""
    if a == b:
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def check(old_tool, target, golden):
    folder = Path(tempfile.mkdtemp(prefix="hypothesis_compare_"))
    try:
        a, b = write(folder / "t", target), write(folder / "g", golden)
        (folder / "old").mkdir()
        answer = old_tool.compare(a, b, folder / "old")
        if not target or not golden:
            return
        done = run(["compare", "-tp", a, "-gp", b, "-o", folder / "ours"], check=False)
        assert done.returncode == 0, done.stderr
        if not answer or answer.startswith("error"):
            return  # it gives up where nothing matches
        old_tool.compared += 1
        want = read(answer)
        (path,) = (folder / "ours").glob("*.csv")
        got = read(path)
        assert want[0] == got[0]
        assert [row[0] for row in want] == [row[0] for row in got]
        for old, ours in zip(want[1:], got[1:]):
            for column, x, y in zip(want[0], old, ours):
                assert same(x, y), (ours[0], column, x, y)
    finally:
        shutil.rmtree(folder)


QUIET = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@QUIET
@given(pairs_of_dumps(False))
def test_statistics(old_tool, pair):
    check(old_tool, *pair)


@QUIET
@given(pairs_of_dumps(True))
def test_checksums(old_tool, pair):
    check(old_tool, *pair)

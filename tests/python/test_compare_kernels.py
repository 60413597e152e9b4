"""Kernel dumps of MindSpore, `compare --rank --step`, beside what the old tool makes of them."""

import csv
import json
import math
import os
import sys
from pathlib import Path

import msprobe
import numpy
import openpyxl
import pytest
from launch import run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command, run

# The old tool's module imports the framework and uses nothing of it.
OLD = """
import argparse, importlib.abc, importlib.machinery, sys
from unittest import mock


class Framework(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mindspore", "mindtorch"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__version__ = "2.7.0"
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Framework())
package = type(sys)("msprobe.mindspore")
import msprobe, os
package.__path__ = [os.path.join(os.path.dirname(msprobe.__file__), "mindspore")]
sys.modules["msprobe.mindspore"] = package
from msprobe.mindspore.compare.ms_graph_compare import GraphMSComparator

target, golden, out, rank, step = sys.argv[1:]
args = argparse.Namespace(target_path=target, golden_path=golden, output_path=out, xlsx=False, rank=rank, step=step)
GraphMSComparator(args).compare_core()
"""

HEADER = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,L2Norm Value"
NAN, INF = float("nan"), float("inf")


def place(folder, rank=0, step=0, graph=0):
    path = folder / f"rank_{rank}" / "Net" / str(graph) / str(step)
    path.mkdir(parents=True, exist_ok=True)
    return path


def save(folder, op, array, time=100, io="input", index=0, dtype=True, **where):
    array = numpy.asarray(array)
    end = f".{array.dtype.name.capitalize()}" if dtype else ""
    name = f"MatMul.Default_{op}-op0.0.0.{time}.{io}.{index}.DefaultFormat{end}.npy"
    numpy.save(place(folder, **where) / name, array)


def statistics(folder, lines, header=HEADER, **where):
    (place(folder, **where) / "statistic.csv").write_text("\n".join([header, *lines]) + "\n")


def line(op, numbers, shape='"(2,3)"', dtype="float32", time=100, io="output", slot=0):
    return f"MatMul,Default_{op}-op0,0,0,{time},{io},{slot},24,{dtype},{shape},{','.join(map(str, numbers))}"


def compare(target, golden, out, *options, **more):
    return run(["compare", "-tp", target, "-gp", golden, "-o", out, *options], **more)


def table(folder, rank=0, step=0):
    (path,) = Path(folder).glob(f"compare_result_{rank}_{step}_*.csv")
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    return {row["NPU Name"] or row["Bench Name"]: row for row in rows}, list(rows[0])


def theirs(old_python, target, golden, out):
    out.mkdir()
    script = out.parent / f"old_{out.name}.py"
    script.write_text(OLD)
    run_python([script, target, golden, out, "0", "0"], python=old_python, ours=False, cwd=out.parent)
    return table(out)


def same(a, b):
    """Texts, and numbers that single precision does not tell apart."""
    if a == b or {a, b} == {"", "nan"}:
        return True
    percent = a.endswith("%") and b.endswith("%")
    try:
        x, y = (float(v.rstrip("%")) if percent else float(v) for v in (a, b))
    except ValueError:
        return False
    return math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-12)


SIX = numpy.arange(1, 7, dtype=numpy.float32).reshape(2, 3)
ARRAYS = {
    "same": (SIX, SIX),
    "near": (SIX, SIX * 1.001),
    "differs": (SIX, SIX[::-1]),
    "zero": (SIX * 0, SIX),
    "both_zero": (SIX * 0, SIX * 0),
    "nan_same": (numpy.float32([1, NAN, 3]), numpy.float32([1, NAN, 4])),
    "one": (numpy.float32([2]), numpy.float32([3])),
    "dtype": (SIX, SIX.astype(numpy.float64)),
    "shape": (SIX, SIX.reshape(3, 2)),
    "scalar": (numpy.float32(2), numpy.float32(3)),
    "int": (numpy.int64([1, 2, 3]), numpy.int64([1, 2, 4])),
}


def test_tensors_as_the_old_tool_has_them(old_python, plain_path):
    sides = plain_path / "t", plain_path / "g"
    for side, folder in enumerate(sides):
        for op, pair in ARRAYS.items():
            save(folder, op, pair[side])
            # The same kernel twice: the earlier runs stand against each other.
            save(folder, op, pair[side] * 2, time=50 + side)
            save(folder, op, pair[side], io="output", dtype=False)
    done = compare(*sides, plain_path / "ours", "--rank", "0", "--step", "0", "--json")
    want, columns = theirs(old_python, *sides, plain_path / "theirs")
    got, ours = table(plain_path / "ours")
    assert ours == columns and list(got) == list(want)
    told = json.loads(done.stdout)["tables"][0]
    assert (told["rows"], told["mode"], told["target_only"]) == (3 * len(ARRAYS), "kernel_tensor", 0)
    for name, row in got.items():
        old = want[name]
        for column in columns:
            if column == "Err_message":
                assert row[column].split() == old[column].split(), name
            else:
                assert same(row[column], old[column]), (name, column, row[column], old[column])


LINES = {
    "same": ((4, 1, 2.5, 7), (4, 1, 2.5, 7)),
    "near": ((4, 1, 2.5, 7), (4.5, 1, 2.25, 7.1)),
    "far": ((9, 1, 2.5, 7), (3, 1, 2.25, 7.1)),
    "zero": ((1e-3, 0, 0, 1), (0, 0, 0, 1)),
    "words": (("null", "False", "True", "nan"), (0, 0, 1, "nan")),
    "inf": ((INF, 1, 1, INF), (INF, 1, 1, 3)),
}


def test_statistics_as_the_old_tool_has_them(old_python, plain_path):
    sides = plain_path / "t", plain_path / "g"
    for side, folder in enumerate(sides):
        lines = [line(op, pair[side]) for op, pair in LINES.items()]
        shape, dtype = (('"(2,3)"', "float32"), ('"(3,2)"', "float16"))[side]
        statistics(folder, [*lines, line("other", (1, 1, 1, 1), shape, dtype)])
    compare(*sides, plain_path / "ours", "--rank", "0")
    want, columns = theirs(old_python, *sides, plain_path / "theirs")
    got, ours = table(plain_path / "ours")
    assert ours == columns and list(got) == list(want)
    for name, row in got.items():
        for column in columns:
            old = want[name][column]
            if column == "Err_message":
                assert row[column].split() == old.split()
            else:
                assert same(row[column], old), (name, column, row[column], old)


def test_what_the_old_tool_gets_wrong(tmp_path):
    """Dots in paths, long names, values that are too small, no values, kernels of one side, NaN at other places."""
    sides = tmp_path / "run.v1" / "t", tmp_path / "run.v1" / "g"
    for side, folder in enumerate(sides):
        save(folder, "moved", numpy.float32([NAN, 1, 2] if side else [1, NAN, 2]))
        save(folder, f"only{side}", SIX)
        save(folder, "empty", SIX[:0])
        long = "MatMul.Default_" + "x" * 300 + "-op0.0.0.7.output.0.DefaultFormat.Float32.npy"
        numpy.save(place(folder) / f"{side}123.npy", SIX)
        (place(folder) / "mapping.csv").write_text(f"{side}123.npy,{long}\n")
        (place(folder) / "notes.npy").write_bytes(b"x")
        statistics(folder, [line("small", (9 if side else 1, -9, 0, 1))], step=1)
    done = compare(*sides, tmp_path / "out", "--json")
    tables = {t["step"]: t for t in json.loads(done.stdout)["tables"]}
    assert (tables[0]["rows"], tables[0]["target_only"], tables[0]["golden_only"]) == (5, 1, 1)
    assert "1 files or lines below" in done.stderr
    rows = {
        next(k for k in ("moved", "only0", "only1", "empty", "123") if k in name): r
        for name, r in table(tmp_path / "out")[0].items()
    }
    assert rows["moved"]["Accuracy Reached or Not"] == "No" and "position of inf or nan" in rows["moved"]["Err_message"]
    assert rows["only0"]["Err_message"] == "Bench has no such kernel." and rows["only0"]["NPU max"] == "6.0"
    assert rows["only1"]["Err_message"] == "NPU has no such kernel." and rows["only1"]["Bench max"] == "6.0"
    assert rows["empty"]["Err_message"] == "This is empty data, can not compare."
    assert rows["123"]["Cosine"] == "1.0" and rows["123"]["Accuracy Reached or Not"] == "Yes"
    (small,) = table(tmp_path / "out", step=1)[0].values()
    assert small["Accuracy Reached or Not"] == "No", "smaller than the golden value counts like larger"


def test_ranks_and_steps_are_chosen(tmp_path):
    sides = tmp_path / "t", tmp_path / "g"
    for side, folder in enumerate(sides):
        for rank in (0, 1, 2):
            for step in (0, 1):
                save(folder, "x", SIX, rank=rank, step=step)
        save(folder, "x", SIX, rank=3, step=side)
        o2 = folder / "ge" / "20250101" / "7" / "Net" / "1" / "5"
        o2.mkdir(parents=True)
        numpy.save(o2 / "MatMul.y.0.0.100.input.0.DefaultFormat.Float32.npy", SIX)

    def made(out, *options):
        done = compare(*sides, tmp_path / out, *options, "--json")
        return {(t["rank"], t["step"]) for t in json.loads(done.stdout)["tables"]}, done.stderr

    found, warned = made("all")
    assert found == {(r, s) for r in (0, 1, 2) for s in (0, 1)} | {(7, 5)}
    assert "has no kernels of rank 3, step 0: left out" in warned
    assert made("some", "--rank", "0, 2", "--step", "1")[0] == {(0, 1), (2, 1)}
    # The older command form names them in its file.
    chosen = tmp_path / "compare.json"
    chosen.write_text(
        json.dumps({"npu_path": str(sides[0]), "bench_path": str(sides[1]), "rank_id": [1], "step_id": []})
    )
    done = run(["-f", "mindspore", "compare", "-i", chosen, "-o", tmp_path / "older"])
    assert done.returncode == 0, done.stderr
    books = sorted((tmp_path / "older").iterdir())
    assert [b.name[:18] for b in books] == ["compare_result_1_0", "compare_result_1_1"]
    assert len(list(openpyxl.load_workbook(books[0], read_only=True).worksheets[0].values)) == 2


def chain(folder, factor, write):
    """Three kernels, one after another; `factor` is in the result of the second and in all that follows."""
    values = [SIX, SIX * 2, SIX * 2 * factor, SIX * 6 * factor]
    for i, op in enumerate(["Mul", "Relu", "Add"]):
        write(folder, op, values[i], "input", 100 + i)
        write(folder, op, values[i + 1], "output", 100 + i)


def write_array(folder, op, array, io, time):
    save(folder, op, array.astype(numpy.float32), time=time, io=io, step=time // 1000)


def test_the_kernel_that_a_difference_begins_at(tmp_path):
    lines = {}

    def write_line(folder, op, array, io, time):
        numbers = (array.max(), array.min(), array.mean(), numpy.linalg.norm(array))
        lines.setdefault(folder, []).append(line(op, numbers, io=io, time=time))

    for kind, write in (("arrays", write_array), ("statistics", write_line)):
        sides = tmp_path / kind / "t", tmp_path / kind / "g"
        for folder, factor in zip(sides, (1.25, 1)):
            chain(folder, factor, write)
            if kind == "statistics":
                statistics(folder, lines[folder])
        done = compare(*sides, tmp_path / kind / "out", "--json")
        verdict = json.loads(done.stdout)["verdict"]
        (origin,) = verdict["origins"]
        assert (verdict["outcome"], origin["cause"], origin["op"]) == ("origin", "op", "Default_Relu-op0.0"), kind
        assert origin["item"] == "output.0" and math.isclose(origin["percent"], 25, rel_tol=1e-5)
        assert (origin["ranks"], origin["step"]) == ([0], 0)
        assert verdict["ops"]["bit_equal"] == 1 and verdict["ops"]["inherited"] == 1
        told = compare(*sides, tmp_path / kind / "out", env={"LC_ALL": "C"}).stdout
        assert told.startswith("Origin: Default_Relu-op0.0: its output.0 ") and "although its inputs agree" in told, (
            told
        )
        assert not [p for p in (tmp_path / kind / "out").iterdir() if p.is_dir()], "nothing is left over"
        same = json.loads(compare(sides[0], sides[0], tmp_path / kind / "same", "--json").stdout)["verdict"]
        assert same["outcome"] == "equal"


def test_values_that_only_the_elements_show_differ(tmp_path):
    sides = tmp_path / "t", tmp_path / "g"
    for folder, array in zip(sides, (SIX, SIX[::-1])):
        save(folder, "Relu", SIX, io="input")
        save(folder, "Relu", array, io="output")
    verdict = json.loads(compare(*sides, tmp_path / "out", "--json").stdout)["verdict"]
    assert verdict["outcome"] == "origin" and verdict["origins"][0]["what"] == "values"


def refused(done, code, *words):
    assert done.returncode == code, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("[msprobe] error: ")
    for word in words:
        assert word in last, last


def test_statistics_against_files(tmp_path):
    """The statistics of the files are computed; bfloat16 is float32 in files of NumPy."""
    sides = tmp_path / "t", tmp_path / "g"
    numbers = (6, 1, 3.5, float(numpy.linalg.norm(SIX)))
    lines = [line(op, numbers, dtype=dtype) for op, dtype in (("x", "float32"), ("b", "bfloat16"))]
    statistics(sides[0], [*lines, line("i", (3, 1, 2, 3.7416573), shape="(3)", dtype="int64")])
    for op in "xb":
        save(sides[1], op, SIX, io="output")
    save(sides[1], "i", numpy.int64([1, 2, 3]), io="output")
    for target, golden in (sides, sides[::-1]):
        out = tmp_path / f"out_{target.name}"
        told = json.loads(compare(target, golden, out, "--json").stdout)["tables"][0]
        assert (told["mode"], told["rows"], told["reached"], told["unread"]) == ("kernel_statistics", 3, 3, 0)
        rows, _ = table(out)
        assert {row["Max diff"] for row in rows.values()} == {"0.0"}
        assert all(float(row["L2norm diff"]) < 1e-5 for row in rows.values())


def test_layout_of_releases_8(tmp_path):
    """rank_N/TIME/step_N, as the C++ part of 8.x writes."""
    sides = tmp_path / "t", tmp_path / "g"
    for side, folder in enumerate(sides):
        where = folder / "rank_1" / "20250101120000" / "step_3"
        where.mkdir(parents=True)
        numpy.save(where / "MatMul.Default_x-op0.0.0.7.input.0.ND.Float32.npy", SIX + side)
    compare(*sides, tmp_path / "out")
    assert len(table(tmp_path / "out", rank=1, step=3)[0]) == 1


OLDER_HEADER = "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,Shape"


def older_statistics(folder, titles, *lines):
    """statistic.csv as the C++ part of 8.x writes it: shapes without quotes."""
    where = folder / "rank_0" / "20250101120000" / "step_0"
    where.mkdir(parents=True, exist_ok=True)
    start = "MatMul,fc,1,7,100,{},0,24,FLOAT,ND,(2,3),{}"
    text = [f"{OLDER_HEADER},{titles}", *(start.format(*line) for line in lines)]
    (where / "statistic.csv").write_text("\n".join(text) + "\n")


def test_statistics_of_releases_8(tmp_path):
    sides = tmp_path / "t", tmp_path / "g"
    for side, most in zip(sides, (9, 4)):
        titles = "Max Value,Min Value,Avg Value,L2Norm Value,NaN Count"
        older_statistics(side, titles, ("input", "4,1,2,3,0"), ("output", f"{most},1,2,3,0"))
    told = json.loads(compare(*sides, tmp_path / "out", "--json").stdout)
    rows, _ = table(tmp_path / "out")
    assert [row["NPU Tensor Shape"] for row in rows.values()] == ["[2,3]"] * 2
    numbers = [[float(row[f"NPU {s}"]) for s in ("max", "min", "mean", "l2norm")] for row in rows.values()]
    assert numbers == [[4, 1, 2, 3], [9, 1, 2, 3]]
    assert [row["Accuracy Reached or Not"] for row in rows.values()] == ["Yes", "No"]
    assert told["tables"][0]["not_reached"] == 1


def test_lines_with_nothing_but_checksums(tmp_path):
    """Those that differ do not pass, and what has no figure in common is not judged."""
    sides = tmp_path / "t", tmp_path / "g"
    for side, end in zip(sides, "ab"):
        older_statistics(side, "MD5 Value", ("input", "0cc1"), ("output", f"92e{end}"))
    out = compare(*sides, tmp_path / "out").stdout
    assert out.startswith("Origin: ") and "fc.1: its output.0 differs" in out
    rows, _ = table(tmp_path / "out")
    assert [row["Accuracy Reached or Not"] for row in rows.values()] == ["Yes", "No"]
    older_statistics(sides[0], "Max Value", ("input", "4"))
    assert compare(*sides, tmp_path / "other").stdout.startswith("Unknown: ")
    rows, _ = table(tmp_path / "other")
    assert {row["Accuracy Reached or Not"] for row in rows.values()} == {""}


def test_files_of_ascend(tmp_path):
    """All tensors of a kernel in one file, in the formats of the device."""
    data = Path(__file__).resolve().parents[1] / "golden" / "mindspore" / "adump" / "data"
    sides = tmp_path / "t", tmp_path / "g"
    for folder in sides:
        where = place(folder)
        for path in data.iterdir():
            (where / path.name).write_bytes(path.read_bytes())
    changed = place(sides[0]) / "Conv2D.Default_network_conv_Conv2D-op0.8.3.1735704000003274"
    changed.write_bytes(changed.read_bytes()[:-40] + bytes(8) + changed.read_bytes()[-32:])
    compare(*sides, tmp_path / "out")
    parts = {name: Path(name).name.split(".") for name in table(tmp_path / "out")[0]}
    rows = {".".join([parts[name][0], *parts[name][-2:]]): row for name, row in table(tmp_path / "out")[0].items()}
    assert rows["Conv2D.input.0"]["NPU Tensor Shape"] == "[1, 20, 3, 3]"
    assert rows["Conv2D.input.1"]["NPU Tensor Shape"] == "[16, 20]"
    assert rows["Conv2D.input.0"]["Cosine"] == "1.0"
    assert len(rows) >= 12 and "Opdebug.input.0" not in rows


def test_what_cannot_be_compared_is_said(tmp_path):
    sides = tmp_path / "t", tmp_path / "g"
    for folder in sides:
        save(folder, "x", SIX, rank=0, step=0)
        statistics(folder, [], header="", step=2)
    out = tmp_path / "out"
    done = compare(*sides, out, check=False)
    refused(done, 3, "1 of 2 pairs", "rank 0, step 2", "is empty")
    assert len(list(out.glob("*.csv"))) == 1, "the others are compared"
    refused(compare(*sides, out, "--rank", "9", check=False), 3, "--rank and --step choose")
    refused(compare(*sides, out, "--rank", "x", check=False), 2, "--rank takes numbers")
    refused(compare(*sides, out, "--rank", "0", "-fm", check=False), 2, "--fuzzy_match")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(compare(empty, sides[1], out, "--rank", "0", check=False), 3, "no kernel dumps", "leave out --rank")
    refused(compare(tmp_path / "gone", sides[1], out, "--step", "0", check=False), 3, "is not a directory")
    # What a file says is not believed: it is a row that could not be compared.
    for folder in sides:
        for name in Path(folder / "rank_0/Net/0/0").iterdir():
            name.write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    os.makedirs(tmp_path / "bad")
    done = compare(*sides, tmp_path / "bad", "--step", "0", "--json")
    assert json.loads(done.stdout)["tables"][0]["unread"] == 1
    ((row,), _) = (list(table(tmp_path / "bad")[0].values()), None)
    assert row["Err_message"].startswith("Dump file not found or read failed")


def test_the_python_function(tmp_path, monkeypatch):
    monkeypatch.setenv("MSPROBE_BIN", str(find_command()))
    sides = tmp_path / "t", tmp_path / "g"
    for factor, folder in enumerate(sides, 1):
        for rank in range(2):
            save(folder, "a", SIX, rank=rank)
            save(folder, "b", SIX * factor, rank=rank)
    both = msprobe.compare(target=sides[0], golden=sides[1], output_path=tmp_path / "both")
    assert both.outcome == "origin" and both.verdict["origins"][0]["op"] == "Default_b-op0.0" and len(both.files) == 2
    assert str(both).startswith("Origin: Default_b-op0.0: its input.0 ")
    by_option = {"target": sides[0], "golden": sides[1], "rank": 1, "step": [0]}
    by_key = {"input_param": {"npu_path": sides[0], "bench_path": sides[1], "rank_id": [1], "step_id": [0]}}
    for number, arguments in enumerate((by_option, by_key)):
        result = msprobe.compare(output_path=tmp_path / f"one{number}", **arguments)
        assert [table["rank"] for table in result.summary["tables"]] == [1]
        assert set(result.files) == set((tmp_path / f"one{number}").iterdir())
    with pytest.raises(msprobe.CompareArgumentError, match="--html does not apply to kernel dumps"):
        msprobe.compare(target=sides[0], golden=sides[1], output_path=tmp_path / "no", html=True)

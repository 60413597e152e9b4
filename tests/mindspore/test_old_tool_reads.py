"""mindstudio-probe, in an environment of its own, reads what we record of MindSpore: compare and graph_visualize."""

import csv
import json
import pathlib
import sqlite3
import subprocess

import pytest
from launch import run_mindspore

HERE = pathlib.Path(__file__).parent


def record_two(python, folder, config):
    """Two recordings of the same network, as step directories."""
    dumps = []
    for side in ("npu", "bench"):
        dump = folder / side
        command = [python, HERE / "capture_scenario.py", "small", dump, json.dumps({"level": "mix", **config})]
        done = run_mindspore(command, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        (dump / "step0" / "rank").rename(
            dump / "step0" / "rank0"
        )  # mindstudio-probe takes no directory without a number
        dumps.append(dump / "step0")
    return dumps


@pytest.fixture(scope="module")
def two_dumps(tmp_path_factory, mindspore_python):
    return record_two(mindspore_python, tmp_path_factory.mktemp("dumps"), {})


def old(python, *arguments):
    done = subprocess.run([python.parent / "msprobe", *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_compare(tmp_path, two_dumps, old_mindspore_python):
    old(old_mindspore_python, "compare", "-tp", two_dumps[0], "-gp", two_dumps[1], "-o", tmp_path)
    (table,) = tmp_path.rglob("*.csv")
    with table.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 60
    assert {row["Bench Name"] for row in rows}.isdisjoint({"N/A", ""}), "every row has its partner"
    assert all(row["NPU max"] == row["Bench max"] for row in rows)
    assert {row["Result"] for row in rows} <= {"pass", ""}, {row["Result"] for row in rows}


def test_compare_of_tensors(tmp_path, mindspore_python, old_mindspore_python):
    """It opens each of our files: equal tensors have no error, numbers have no file in either tool."""
    sides = record_two(mindspore_python, tmp_path, {"task": "tensor"})
    old(old_mindspore_python, "compare", "-tp", sides[0], "-gp", sides[1], "-o", tmp_path / "out")
    (table,) = (tmp_path / "out").rglob("*.csv")
    with table.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 60
    assert {row["Bench Name"] for row in rows}.isdisjoint({"N/A", ""})
    assert {(row["Result"], row["Err_message"]) for row in rows} == {("pass", "[]")}
    assert {row["MaxAbsErr"] for row in rows} == {"0.0", "unsupported"}
    assert sum(row["Cosine"] == "1.0" for row in rows) > 60


def test_graph(tmp_path, two_dumps, old_mindspore_python):
    old(
        old_mindspore_python,
        "graph_visualize",
        "-tp",
        two_dumps[0] / "rank0",
        "-gp",
        two_dumps[1] / "rank0",
        "-o",
        tmp_path,
    )
    (path,) = tmp_path.glob("*.vis.db")
    with sqlite3.connect(path) as db:
        names = {name for (name,) in db.execute("select node_name from tb_nodes")}
    assert {"Cell.first.Dense.forward.0", "Primitive.matmul.MatMul.0.backward"} <= names

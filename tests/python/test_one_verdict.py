"""The counts of a run by verdict are the same wherever they are shown: summary, table, graph file, story."""

import csv
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

ALL_REDUCE = "Distributed.all_reduce.0.forward"


def tensor(value):
    shown = float(value)
    return {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [4, 4],
        "Max": shown,
        "Min": shown,
        "Mean": shown,
        "Norm": 4 * shown,
        "requires_grad": False,
    }


def op(source, result):
    return {"input_args": [tensor(v) for v in source], "input_kwargs": {}, "output": [tensor(result)]}


def write_rank(directory, ops):
    directory.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (directory / "dump.json").write_text(json.dumps({**head, "data": ops}))
    (directory / "construct.json").write_text(json.dumps(dict.fromkeys(ops)))
    (directory / "stack.json").write_text("{}")


def ops_of(total, own):
    return {
        "Functional.linear.0.forward": op([1], own),
        ALL_REDUCE: op([own], total),
        "Functional.relu.0.forward": op([total], total),
        "Functional.linear.1.forward": op([total, 1], 3 * total),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Rank 2 of four makes NaN; the all_reduce hands it to the others, whose own inputs are right."""
    root = tmp_path_factory.mktemp("run")
    for side in ("target", "golden"):
        for step in (0, 1):
            for rank in range(4):
                broken = side == "target"
                ops = ops_of(float("nan") if broken else 8, float("nan") if broken and rank == 2 else 2)
                write_rank(root / side / f"step{step}" / f"rank{rank}", ops)
    return root


def msprobe(*arguments):
    done = subprocess.run(["msprobe", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def added(counts):
    return {key: sum(c[key] for c in counts) for key in ("bug", "suspicious", "inherited", "bit_equal")}


def test_counts_are_equal_on_every_surface(run, tmp_path):
    step = [run / "target" / "step0", run / "golden" / "step0"]
    tables = tmp_path / "tables"
    told = json.loads(msprobe("compare", "-tp", step[0], "-gp", step[1], "-o", tables, "--ruler", "--json"))
    story = told["verdict"]
    assert [story["origins"][0]["ranks"], story["origins"][0]["op"]] == [[2], "Functional.linear.0.forward"]
    assert story["ops"]["bug"] == 1  # and not one for each rank that got NaN from the call
    assert {r["rank"] for r in story["reached"]} == {0, 1, 3}

    pairs = [pair["ruler"] for pair in told["pairs"]]
    assert added(pairs) == {key: story["ops"][key] for key in added(pairs)}

    begins = set()
    for path in Path(tables).glob("*.csv"):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if row["Ruler Verdict"] in ("bug", "suspicious"):
                    begins.add((path.name.split("_")[2], row["NPU Name"].rsplit(".", 2)[0]))
    assert begins == {("rank2", "Functional.linear.0.forward")}

    graphs = tmp_path / "graphs"
    msprobe("graph_visualize", "-tp", step[0], "-gp", step[1], "-o", graphs)
    (file,) = graphs.glob("*.vis.db")
    with sqlite3.connect(file) as db:
        written = dict(db.execute("SELECT verdict, count(*) FROM msprobe_precision GROUP BY verdict"))
        in_file = json.loads(db.execute("SELECT story FROM msprobe_verdict").fetchone()[0])
    assert in_file["ops"] == story["ops"]
    assert [written.get("bug", 0), written.get("suspicious", 0)] == [1, 0]


def test_a_weight_that_the_step_before_made_begins_nothing(tmp_path):
    """In step 1 the parameter differs because step 0 went wrong."""
    name = "Module.fc.Linear.forward.0"
    for side, wrong in (("target", 1), ("golden", 0)):
        for step in (0, 1):
            module = {**op([1], 2 + wrong), "parameters": {"weight": tensor(1 + wrong * step)}}
            write_rank(tmp_path / side / f"step{step}" / "rank", {name: module})
    told = json.loads(
        msprobe("compare", "-tp", tmp_path / "target", "-gp", tmp_path / "golden", "-o", tmp_path / "out", "--json")
    )
    assert told["verdict"]["origins"][0]["step"] == 0
    assert [pair["ruler"]["bug"] for pair in told["pairs"]] == [1, 0]
    assert told["verdict"]["ops"]["bug"] == 1

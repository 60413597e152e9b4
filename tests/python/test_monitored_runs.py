"""What a monitor wrote, looked at without a browser: on the terminal, in one file, and collected by data2db."""

import base64
import gzip
import json
import math
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from graph_cases import find_command

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from monitor_scale import names_of, write_series

STEPS, SERIES = 400, 93  # 3 series of no layer, and 10 layers


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("monitor") / "output"
    for rank in (0, 1):
        directory = root / f"Nov25_18-24-11-rank{rank}-0000000{rank}"
        directory.mkdir(parents=True)
        write_series(directory / "monitor.series", rank, SERIES, STEPS, ["norm", "min"], 1)
    (root / "anomaly_detected" / "rank1").mkdir(parents=True)
    anomaly = {"rank": 1, "step": 320, "tag_name": "0:model.layers.7.mlp.weight/1/post_grad", "message": "it is NaN"}
    (root / "anomaly_detected" / "rank1" / "anomaly.json").write_text(json.dumps({"a": anomaly}))
    event = {"onset": 240, "rank": 1, "table": "grad_reduced", "text": "step 240: norm of all layers jumped"}
    (root / "judgement.json").write_text(json.dumps({"events": [event]}))
    return root


def msprobe(*args, code=0, language="en_US.UTF-8"):
    done = subprocess.run(
        [find_command(), *map(str, args)], capture_output=True, text=True, env={"LC_ALL": language}, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_layers_over_steps(run):
    text = msprobe("monitor", "show", run, "--rank", 1, "--width", 120)
    head, *lines = text.splitlines()
    assert head == "grad_reduced norm, rank 1 of 2, steps 0 to 399, 8 steps a column"
    rows = {line.split()[0]: line for line in lines[:13]}
    assert len(rows) == 13 and "model.layers.9" in rows
    assert re.search(r"[▁-█]{30}▲[▁-█]{9}N{10}  ", rows["model.layers.7"])
    assert "N" not in rows["model.layers.6"].split()[1]
    assert lines[-2] == "step 240: grad_reduced step 240: norm of all layers jumped"
    assert lines[-1] == "step 320: 0:model.layers.7.mlp.weight/1/post_grad it is NaN"
    assert "it is NaN" not in msprobe("monitor", "show", run)
    assert "step 0 至 399，每列" in msprobe("monitor", "show", run, language="zh_CN.UTF-8")


def test_a_row_that_was_cut_is_named(tmp_path):
    directory = tmp_path / "Nov25_18-24-11-rank0-00000000"
    directory.mkdir()
    file = directory / "grad_reduced_0-1.csv"
    file.write_text("vpp_stage,name,step,norm,max\n0,w,0,1.0,0.5\n0,w,1,2.0,0.5\n0,w,2,3.0")
    said, head = msprobe("monitor", "show", tmp_path).splitlines()[:2]
    assert said == f"{file}: 1 rows that were cut are left out: the training may have been killed"
    assert head == "grad_reduced norm, rank 0 of 1, steps 0 to 1, a column for each"
    assert "个被截断的行已略过" in msprobe("monitor", "show", tmp_path, language="zh_CN.UTF-8")
    shown = json.loads(msprobe("monitor", "show", tmp_path, "--json"))
    assert (shown["cut_rows"], shown["cut_file"]) == (1, str(file))
    file.write_text(file.read_text() + ",0.5\n")
    assert msprobe("monitor", "show", tmp_path).startswith("grad_reduced norm, rank 0 of 1, steps 0 to 2")


def test_plots_of_series(run):
    text = msprobe("monitor", "show", run, "--series", "layers.3.mlp", "--width", 80, "--height", 8, language="C")
    assert text.isascii() and len(text.splitlines()) == 1 + 8 + 2 + 3 + 3  # what stands out at step 240
    assert "* model.layers.3.mlp.down_proj.weight" in text
    values = json.loads(msprobe("monitor", "show", run, "--series", "layers.3.mlp.up", "--stat", "min", "--json"))
    (row,) = values["rows"]
    assert row["name"] == "model.layers.3.mlp.up_proj.weight"
    assert row["lowest"][0] <= row["mean"][0] <= row["highest"][0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--metric", "x"], "has no metric x: it has grad_reduced"),
        (["--stat", "max"], "has no statistic max: it has norm, min"),
        (["--rank", "7"], "the run has no rank 7: choose one that it has"),
        (["--series", "zzz"], "no series of grad_reduced has zzz in its name: give another part of a name"),
    ],
)
def test_what_is_not_there_is_named(run, options, text):
    assert msprobe("monitor", "show", run, *options, code=3).rstrip().endswith(text)


def test_a_summary_in_one_file(run, tmp_path):
    page = tmp_path / "report.html"
    said = json.loads(msprobe("export", run, "-o", page, "--json"))
    assert said["runs"] == 1 and said["bytes"] == page.stat().st_size < 2 << 20
    packed = re.search(r'<script [^>]*id="data"[^>]*>([^<]+)</script>', page.read_text()).group(1)
    (held,) = json.loads(gzip.decompress(base64.b64decode(packed)))["runs"]
    (rank,) = held["data"]["ranks"]
    assert rank["rank"] == 1, "the one of which something was found"
    (metric,) = rank["metrics"]
    assert metric["stat"] == "norm" and len(metric["labels"]) == SERIES
    assert held["data"]["events"]["events"][1]["step"] == 320


def test_data2db_reads_the_file_of_series(run, tmp_path):
    msprobe("data2db", "--data", run, "--db", tmp_path, "--format", "monitor")
    db = sqlite3.connect(tmp_path / "monitor_data.trend.db")
    assert db.execute("SELECT count(*) FROM trend_data").fetchone() == (2 * STEPS * SERIES,)
    assert {name for (name,) in db.execute("SELECT target_name FROM monitoring_targets")} == set(names_of(SERIES))
    where = "JOIN monitoring_targets USING (target_id) WHERE target_name LIKE 'model.layers.7.mlp.up%' AND rank = 1"
    values = dict(db.execute(f"SELECT step, norm FROM trend_data {where}"))
    assert values[0] > 0 and math.isfinite(values[319]) and values[320] is None


def test_a_part_of_the_steps_and_what_stands_out_in_it(tmp_path):
    directory = tmp_path / "Nov25_18-24-11-rank0-00000000"
    directory.mkdir()
    values = [9.0 if step == 42 else 1 + 0.01 * (step % 5) for step in range(100)]
    rows = "".join(f"0,w,{step},{value}\n" for step, value in enumerate(values))
    (directory / "grad_reduced_0-99.csv").write_text("vpp_stage,name,step,norm\n" + rows)
    for series in ([], ["--series", "w"]):
        text = msprobe("monitor", "show", tmp_path, "--steps", "35-50", *series, "--width", 80)
        assert text.startswith("grad_reduced norm, rank 0 of 1, steps 35 to 50, a column for each\n")
        assert text.endswith("▲ step 42: w is 9, 8.91 times the one before\n")
    assert msprobe("monitor", "show", tmp_path, "--width", 80, language="C").splitlines()[1].count("^") == 1
    assert "steps 90 to 99" in msprobe("monitor", "show", tmp_path, "--steps", "90-")
    shown = json.loads(msprobe("monitor", "show", tmp_path, "--steps", "42", "--json"))
    assert shown["rows"][0]["highest"] == [9.0]
    assert "expected steps such as 400-440" in msprobe("monitor", "show", tmp_path, "--steps", "x", code=2)
    assert "has no step of 200-: it has 0 to 99" in msprobe("monitor", "show", tmp_path, "--steps", "200-", code=3)

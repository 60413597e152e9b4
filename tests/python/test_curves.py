"""msprobe curves: files of trainings in, verdict, JSON and page out; every band is measured by tests/curves/publish_curves.py."""

import base64
import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from graph_cases import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "curves"))

from small_training import train

STEPS = 50


def curves(*args, code=0):
    """The result as JSON."""
    done = run(["curves", *args, "--json"], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Logs: three runs of A, a fresh one, one with 1 % more learning rate, one with another beta2."""
    folder = tmp_path_factory.mktemp("curves")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    changes = {"lr": {"lr": 1.01e-3}, "beta2": {"beta2": 0.95}}
    for order, name in enumerate(("a1", "a2", "a3", "fresh", "lr", "beta2")):
        train(folder / f"{name}.log", 1, order, STEPS, **changes.get(name, {}))
    torch.set_num_threads(threads)
    return folder


def test_a_fresh_run_is_within_the_golden_band_and_small_changes_leave_it(runs):
    a, more = runs / "a1.log", [runs / "a2.log", runs / "a3.log"]
    fresh = curves(a, runs / "fresh.log", *more)
    assert fresh["fine"] and fresh["verdict"] in ("reasonable", "within_band")
    for change in ("lr", "beta2"):
        result = curves(a, runs / f"{change}.log", *more, code=1)
        loss = next(c for c in result["curves"] if c["quantity"] == "loss")
        assert loss["golden_band"]["first_outside"] <= 10, change
        assert not result["fine"]
        assert {r["rule"]: r["verdict"] for r in result["rules"]}["step1_loss"] == "pass"


def test_one_run_of_each_is_no_verdict(runs):
    result = curves(runs / "a1.log", runs / "fresh.log", code=1)
    assert result["verdict"] == "no_band"
    assert curves(runs / "a1.log", runs / "a1.log")["verdict"] == "equal"


def test_event_files_of_tensorboard(tmp_path):
    """The file is TensorBoard's own: scalars in both forms, and the same loss over samples beside it."""
    folder = Path(__file__).resolve().parents[1] / "curves" / "tensorboard"
    log = tmp_path / "a.log"
    lines = (f"step {i} loss: {3 - i / 32} grad_norm: {(3 - i / 32) / 2} lr: 0.0625\n" for i in range(1, 41))
    log.write_text("".join(lines))
    for given in (folder, next(folder.iterdir())):
        result = curves(given, log)
        assert {c["quantity"]: c["steps"] for c in result["curves"]} == {
            "loss": 40,
            "grad norm": 40,
            "learning rate": 40,
        }
        assert result["verdict"] == "equal"
    whole = next(folder.iterdir()).read_bytes()
    cut = tmp_path / "events.out.tfevents.1"
    cut.write_bytes(whole[:-5])
    result = curves(cut, log)
    assert result["curves"][0]["steps"] == 39 and any("breaks off" in note for note in result["notes"])
    cut.write_bytes(whole[:900] + bytes([whole[900] ^ 1]) + whole[901:])
    done = run(["curves", cut, log], check=False)
    assert done.returncode == 3 and "is damaged at byte" in done.stderr


def test_a_trend_file_holds_the_loss_and_the_norms(tmp_path):
    sqlite = pytest.importorskip("sqlite3")
    db = sqlite.connect(tmp_path / "a.trend.db")
    db.executescript(
        "CREATE TABLE monitoring_targets(target_id INTEGER PRIMARY KEY, target_name TEXT, vpp_stage INTEGER, micro_step INTEGER);"
        "CREATE TABLE monitoring_metrics(metric_id INTEGER PRIMARY KEY, metric_name TEXT);"
        "CREATE TABLE trend_data(rank INTEGER, step INTEGER, target_id INTEGER, metric_id INTEGER, norm REAL, mean REAL);"
        "INSERT INTO monitoring_targets VALUES(1, 'Functional.cross_entropy.0.output.0', 0, 0), (2, 'fc.weight', 0, 0);"
        "INSERT INTO monitoring_metrics VALUES(1, 'forward'), (2, 'parameters_grad');"
    )
    for step in range(5):
        db.execute("INSERT INTO trend_data VALUES(0, ?, 1, 1, 0, ?)", (step, 3.0 - step / 4))
        db.execute("INSERT INTO trend_data VALUES(0, ?, 2, 2, ?, 0)", (step, 2.0))
    db.commit()
    db.close()
    result = curves(tmp_path / "a.trend.db", tmp_path / "a.trend.db")
    assert {c["quantity"]: c["steps"] for c in result["curves"]} == {"loss": 5, "grad norm": 5}
    assert any("cross_entropy" in note for note in result["notes"])


def test_the_page_and_the_plots(runs, tmp_path):
    done = run(["curves", *(runs / f"{n}.log" for n in ("a1", "lr", "a2")), "-o", tmp_path / "out"], check=False)
    assert done.returncode == 1 and "verdict: not reasonable" in done.stdout and "golden band of 2 runs" in done.stdout
    assert "|*" in done.stdout.replace(" ", "")
    page = (tmp_path / "out" / "curves.html").read_text(encoding="utf-8")
    packed = re.search(r'id="data">([^<]+)<', page)[1]
    document = json.loads(gzip.decompress(base64.b64decode(packed)))["document"]
    charts = [block["chart"] for part in document["parts"] for block in part["blocks"] if "chart" in block]
    assert len(charts) == 4 and any("标杆带" in chart["label"]["zh"] for chart in charts)
    assert sum("band" in chart for chart in charts) == 2
    assert "default-src 'none'" in page  # needs nothing else
    assert json.loads((tmp_path / "out" / "curves.json").read_text())["verdict"] == "outside_band"
    told = run(["curves", runs / "a1.log", runs / "fresh.log"], check=False, env={"LC_ALL": "zh_CN.UTF-8"}).stdout
    assert "结论：未知：没有标杆带" in told and "对齐指南的规则：" in told
    assert not re.search(r"verdict:|rules of|golden|mean relative", told)


BAD = [
    ("hello\n", "step 1 loss: 2\n", "holds no loss that is known"),
    ("", "step 1 loss: 2\n", "holds no loss that is known"),
    ("step 1 loss: 2\n", "step 7 loss: 2\n", "no step in common"),
]


@pytest.mark.parametrize(("a", "b", "said"), BAD)
def test_bad_input_is_one_line(tmp_path, a, b, said):
    for name, text in (("a.log", a), ("b.log", b)):
        (tmp_path / name).write_text(text)
    done = run(["curves", "a.log", "b.log", "-o", "out"], cwd=tmp_path, check=False)
    assert done.returncode == 3 and said in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_other_bad_input(tmp_path):
    (tmp_path / "a.log").write_text("".join(f"step {i} loss: {3 - i / 100}\n" for i in range(1, 30)))
    (tmp_path / "short.log").write_text("".join(f"step {i} loss: {3 - i / 100}\n" for i in range(1, 11)))
    (tmp_path / "cut.tfevents.1").write_bytes(b"\x18" + bytes(30))
    (tmp_path / "x.trend.db").write_bytes(os.urandom(5000))
    (tmp_path / "empty").mkdir()
    for bad, said in (
        ("cut.tfevents.1", "is damaged at byte 0"),
        ("x.trend.db", "cannot be read as a .trend.db file"),
        ("empty", "holds neither event files"),
        ("absent.log", "does not exist"),
    ):
        done = run(["curves", "a.log", bad], cwd=tmp_path, check=False)
        assert done.returncode == 3 and said in done.stderr, done.stderr
    done = run(["curves", "a.log", "a.log", "--pattern", "{what}"], cwd=tmp_path, check=False)
    assert done.returncode == 2 and "--pattern" in done.stderr
    shorter = curves(tmp_path / "a.log", tmp_path / "short.log")
    assert shorter["notes"] == ["10 steps in common are compared: A has 29, B 10"]
    shifted = curves(tmp_path / "a.log", tmp_path / "short.log", "--shift", "5", code=1)
    assert shifted["curves"][0]["first_step"] == 6

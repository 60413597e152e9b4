"""`msprobe acc_check`: functions of a dump are called again, on a device and in float64, and judged."""

import csv
import json
import sys
from pathlib import Path

import publish_planted_kernels
import pytest
import torch
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

ENV = {"MSPROBE_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
# A user's own kernels: what Python runs before everything else.
KERNELS = """
import os, torch
from torch.nn import functional

def gelu(x, approximate="none"):
    return x * torch.sigmoid((1.5 if x.dtype == torch.float32 else 1.702) * x)

def embedding(*args, **kwargs):
    os.abort()

functional.gelu, functional.embedding = gelu, embedding
"""


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def results(folder, what="result"):
    """{name: row} of the one table of this kind."""
    (path,) = folder.glob(f"accuracy_checking_{what}_*.csv")
    return {row[0]: row[1:] for row in rows(path)[1:]}


def check(dump, out, *options, command="acc_check", code=0, **env):
    done = run([command, "-api_info", dump, "-o", out, *options], check=False, env={**ENV, **env}, cwd=out.parent)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("acc_check")
    for task in ("statistics", "tensor"):
        run_python([HERE / "acc_check_scenario.py", root, task])
    return {task: next((root / task).rglob("dump.json")) for task in ("statistics", "tensor")}


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_clean_calls(dumps, task, tmp_path):
    summary = json.loads(check(dumps[task], tmp_path / "out", "--json").stdout)
    found = results(tmp_path / "out")
    # The standards of mindstudio-probe call these inaccurate: sums of bfloat16, and infinities on both sides.
    odd = {"Functional.linear.1", "Torch.matmul.0", "Tensor.sum.1", "Tensor.masked_fill.0"}
    assert {name for name, row in found.items() if row[0] not in ("pass", "SKIP")} <= odd
    assert summary["failed"] + summary["warned"] <= 4 and summary["device"] == "cpu"
    assert found["Functional.linear.0"] == ["pass", "pass", ""]
    assert found["Functional.dropout.0"][0] == "pass"
    # They are right, or rounding explains them.
    against = results(tmp_path / "out", "float64")
    assert {row[1] for row in against.values()} == {"right", "round-off"}
    assert against["Tensor.masked_fill.0.forward.output.0"][1] == "right"
    assert against["Functional.linear.1.forward.output.0"][:2] == ["torch.bfloat16", "right"]
    assert summary["verdicts"]["wrong"] == 0 and summary["suspects"] == []
    times = [entry["times"] for entry in summary["worst"] if entry["verdict"] == "round-off"]
    assert times == sorted(times, reverse=True) and 0 < times[0] <= 1
    details = results(tmp_path / "out", "details")
    assert details["Functional.linear.0.forward.output.0"][:3] == ["torch.float64", "torch.float32", "(4, 16)"]
    assert [f"Functional.linear.0.backward.output.{i}" in details for i in range(4)] == [True, True, True, False]
    # Sums are judged element by element, and what is only moved is exact.
    assert against["Torch.matmul.0.forward.output.0"][7:9] == ["terms", "16"]
    assert against["Torch.topk.0.forward.output.0"][7] == "exact"
    assert against["Functional.dropout.0.forward.output.0"][7] == "distribution"
    assert against["Torch.topk.0.forward.output.1"][7] == "class"
    assert 0 < float(against["Functional.linear.0.forward.output.0"][10]) < 1e-3
    # An autocast is part of the call that is checked.
    assert details["Functional.linear.1.forward.output.0"][1] == "torch.bfloat16"
    assert details["Torch.topk.0.forward.output.1"][0] == "torch.int64"
    (path,) = (tmp_path / "out").glob("*details*")
    assert path.read_bytes().startswith("\ufeffAPI Name,Bench Dtype,DEVICE Dtype,Shape,余弦相似度,".encode())


def test_kernels_of_the_user(dumps, tmp_path):
    """A wrong one is found, and one that ends its process is named; the check goes on."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(KERNELS)
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "task": "acc_check",
                "acc_check": {"error_data_path": "kept", "white_list": ["gelu", "embedding", "tanh", "linear"]},
            }
        )
    )
    options = ["-save_error_data", "-config", tmp_path / "config.json"]
    check(dumps["tensor"], tmp_path / "out", *options, PYTHONPATH=str(tmp_path / "own"))
    found = results(tmp_path / "out")
    assert found["Functional.gelu.0"][0] == "error"
    assert results(tmp_path / "out", "float64")["Functional.gelu.0.forward.output.0"][1] == "wrong"
    assert found["Functional.embedding.0"][0] == "SKIP" and "ended its process" in found["Functional.embedding.0"][2]
    assert found["Torch.tanh.1"][:2] == ["pass", "pass"]
    assert "in black list or not in white list" in found["Torch.softmax.0"][2]
    (kept,) = (tmp_path / "kept").glob("ut_error_data*")
    assert torch.load(kept / "Functional.gelu.0.forward.output.device.0.pt").shape == (4, 16)
    assert not list(kept.glob("Torch.tanh.*"))


def test_a_check_that_was_cut_off(dumps, tmp_path):
    check(dumps["statistics"], tmp_path / "whole")
    whole, details = results(tmp_path / "whole"), results(tmp_path / "whole", "details")
    cut = tmp_path / "cut"
    cut.mkdir()
    for path in (tmp_path / "whole").glob("*.csv"):
        text = path.read_bytes()
        at = text.index(b"Torch.tanh.0.backward") if "details" in path.name else text.index(b"Torch.tanh.0")
        (cut / path.name).write_bytes(text[: at + 9])
    (result,) = cut.glob("*result*")
    done = check(dumps["statistics"], cut, "-csv_path", result, "--json")
    assert json.loads(done.stdout)["resumed"] > 3
    assert results(cut) == whole
    assert results(cut, "details") == details
    assert results(cut, "float64") == results(tmp_path / "whole", "float64")
    renamed = result.rename(cut / "mine.csv")
    assert "under its own name" in check(dumps["statistics"], cut, "-csv_path", renamed, code=2).stderr


def test_in_several_processes(dumps, tmp_path):
    """The same tables, under the names of 8.x, too; calls that differ in values only are checked once."""
    check(dumps["statistics"], tmp_path / "one", "-f", command="run_ut")
    check(dumps["statistics"], tmp_path / "many", "-f", "-n", "2", "-d", "cpu", command="multi_run_ut")
    for what in ("result", "details"):
        assert results(tmp_path / "one", what) == results(tmp_path / "many", what)
    assert "Torch.tanh.0" in results(tmp_path / "one") and "Torch.tanh.1" not in results(tmp_path / "one")


def test_refusals(dumps, tmp_path):
    out = tmp_path / "out"
    assert "torch has no device tpu:7 here" in check(dumps["tensor"], out, "-d", "tpu:7", code=2).stderr
    other = tmp_path / "dump.json"
    other.write_text(json.dumps({"task": "tensor", "level": "L1", "framework": "tensorflow", "data": {}}))
    assert "is a dump of tensorflow" in check(other, out, code=3).stderr
    other.write_text(json.dumps({"task": "tensor", "level": "L0", "framework": "pytorch", "data": {}}))
    assert "holds no calls of functions" in check(other, out, code=3).stderr
    bad = tmp_path / "config.json"
    bad.write_text('{"acc_check": {"black_list": "add"}}')
    assert '"black_list" must be a list' in check(dumps["tensor"], out, "-config", bad, code=3).stderr
    assert not out.exists()


def test_dumps_that_lie(tmp_path):
    """Sizes, paths and types that do not fit are skipped with the reason."""
    leaf = {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [2],
        "Max": 1.0,
        "Min": 0.0,
        "requires_grad": False,
    }
    calls = {
        "huge": {**leaf, "shape": [1 << 40]},
        "negative": {**leaf, "shape": [-2]},
        "dtype": {**leaf, "dtype": "torch.load"},
        "range": {**leaf, "Max": None},
        "path": {**leaf, "data_name": "../../../etc/passwd"},
        "text": {**leaf, "Max": "inf", "Min": "-inf"},
    }
    data = {
        f"Torch.tanh.{i}.forward": {"input_args": [v], "input_kwargs": {}, "output": [leaf]}
        for i, v in enumerate(calls.values())
    }
    data["Torch./tmp/x.tanh.0.forward"] = data["Torch.tanh.5.forward"]
    data["Torch.system.0.forward"] = {"input_args": [], "input_kwargs": {}, "output": []}
    dump = tmp_path / "dump.json"
    dump.write_text(
        json.dumps({"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data})
    )
    check(dump, tmp_path / "out")
    found = [row[0] for row in results(tmp_path / "out").values()]
    assert found == ["SKIP"] * 5 + ["pass", "SKIP", "SKIP"]
    messages = [row[2] for row in results(tmp_path / "out").values()]
    assert "too large" in messages[0] and "torch.load" in messages[2] and "no function system" in messages[7]


@pytest.mark.deep
def test_planted_kernels(tmp_path):
    """Kernels with defects, half of them small, and right ones that compute in another way; torch's own are the truth."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(publish_planted_kernels.START.format(here=str(HERE)))
    run_python([HERE / "acc_check_kernels.py", tmp_path / "dump.json"])
    for kind in ("wrong", "more", "alike", ""):
        own = str(tmp_path / "own")
        check(tmp_path / "dump.json", tmp_path / f"out_{kind}", PYTHONPATH=own, KERNELS=kind)
    kinds = ("", "alike", "wrong", "more")
    clean, alike, planted, more = (publish_planted_kernels.verdicts(tmp_path / f"out_{kind}") for kind in kinds)
    assert set(clean.values()) <= {"right", "round-off"}
    assert set(alike.values()) <= {"right", "round-off"}
    planted = {name: verdict for name, verdict in planted.items() if name.endswith(".0")}
    more = {name: verdict for name, verdict in more.items() if name.endswith(".1")}
    assert (len(planted), len(more)) == (27, 20)
    assert [n for n, verdict in {**planted, **more}.items() if verdict in ("right", "round-off")] == []
    # The fixed tolerances pass half of them, and fail clean products in bfloat16.
    passed = [n for n, row in results(tmp_path / "out_wrong").items() if n in planted and row[:2] == ["pass", "pass"]]
    assert len(passed) >= 10
    assert results(tmp_path / "out_")["Torch.matmul.0"][0] == "warning"

"""acc_check of communications: among gloo processes, from the dumps of all ranks of a real group."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from launch import HERE, run_python

MSPROBE = Path(sys.executable).parent / "msprobe"
MISSING = "it needs the dumps of all"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    root = tmp_path_factory.mktemp("recorded")
    run_python([HERE / "communication_scenario.py", root], env={"OMP_NUM_THREADS": "1"})
    return root / "dump" / "step0"


@pytest.fixture
def dump(recorded, tmp_path):
    return Path(shutil.copytree(recorded, tmp_path / "step0"))


def check(dump, out, rank=0, *options, command="acc_check"):
    """{call: (status, message)} and {result: row of the table of float64}."""
    arguments = [command, "-api_info", dump / f"rank{rank}" / "dump.json", "-o", out, "-d", "cpu", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MSPROBE_PYTHON": sys.executable}
    done = subprocess.run([MSPROBE, *arguments], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode in (0, 1), done.stderr
    (result,) = out.glob("accuracy_checking_result_*.csv")
    (float64,) = out.glob("accuracy_checking_float64_*.csv")
    with open(result, encoding="utf-8-sig") as file:
        calls = {row["API name"]: (row["Forward Test Success"], row["Message"]) for row in csv.DictReader(file)}
    with open(float64, encoding="utf-8-sig") as file:
        return calls, {row["API Name"]: row for row in csv.DictReader(file)}


def change(dump, rank, name, by):
    path = dump / f"rank{rank}" / "dump_tensor_data" / name
    tensor = torch.load(path)
    path.unlink()  # the file may be a hard link
    torch.save(by(tensor), path)


@pytest.mark.parametrize("rank", [0, 1])
def test_recorded_communications_are_right(dump, tmp_path, rank):
    calls, rows = check(dump, tmp_path / "out", rank, "-n", "1", command="multi_acc_check")
    gives_only = {
        0: {"Distributed.scatter.0", "Distributed.send.0"},
        1: {"Distributed.broadcast.0", "Distributed.gather.0", "Distributed.reduce.0"},
    }[rank]
    assert {name for name, (status, _) in calls.items() if status == "SKIP"} == gives_only
    assert {message for status, message in calls.values() if status == "SKIP"} == {
        "nothing arrives at this rank: the results of the others are judged"
    }
    assert {status for status, _ in calls.values()} == {"pass", "SKIP"}
    communications = {name: row for name, row in rows.items() if name.startswith("Distributed.")}
    assert {row["Verdict"] for row in communications.values()} <= {"right", "round-off"}
    assert len(communications) == (19 if rank == 0 else 17)
    rules = {name.split(".")[1]: row["Rule"] for name, row in communications.items()}
    assert rules["reduce_scatter"] == rules["reduce_scatter_tensor"] == "terms"
    assert rules["all_gather"] == rules["all_to_all_single"] == "exact"
    assert communications["Distributed.all_reduce.1.forward.output.0"]["Rule"] == "exact"  # MAX
    assert communications["Distributed.all_reduce.2.forward.output.0"]["Rule"] == "terms"


PLANTED = {
    "all_reduce.0.forward.output.0.pt": lambda t: t * (1 + 1e-5),  # below rtol 1e-3
    "all_reduce.2.forward.output.0.pt": lambda t: t + (torch.arange(50) == 7) * 0.25,  # one element of a half
    "all_reduce.4.forward.output.0.pt": lambda t: t + (torch.arange(3) == 1),  # an integer
    "all_gather.0.forward.output.0.1.pt": lambda t: t.flip(0),
    "reduce_scatter_tensor.0.forward.output.0.pt": lambda t: t / 2,  # a mean instead of a sum
    "reduce.0.forward.output.0.pt": torch.zeros_like,
    "all_reduce.5.forward.output.0.pt": torch.conj_physical,
    "all_reduce.6.forward.output.0.pt": lambda t: t.flip(0),
}


def test_planted_results_are_wrong_and_no_others(dump, tmp_path):
    for name, by in PLANTED.items():
        change(dump, 0, f"Distributed.{name}", by)
    calls, rows = check(dump, tmp_path / "out", 0, "-d", "recorded")
    found = {name for name, row in rows.items() if row["Verdict"] in ("wrong", "suspicious")}
    planted = {f"Distributed.{name.removesuffix('.pt')}" for name in PLANTED}
    planted = {name.replace("output.0.1", "output.1") for name in planted}
    assert found == planted
    failing = {name for name, (status, _) in calls.items() if status in ("error", "warning")}
    assert failing == {name.partition(".forward")[0] for name in planted}
    # The other rank got what is right.
    _, rows = check(dump, tmp_path / "other", 1)
    assert {row["Verdict"] for row in rows.values()} <= {"right", "round-off"}


def skipped(calls, name):
    status, message = calls[f"Distributed.{name}"]
    assert status == "SKIP"
    return message


def test_without_the_other_dumps_the_row_says_so(dump, tmp_path):
    shutil.rmtree(dump / "rank1")
    calls, rows = check(dump, tmp_path / "out")
    for name in ("all_reduce.0", "all_reduce.1", "all_gather.0", "reduce.0"):
        assert MISSING in skipped(calls, name)
    assert "rank 1 has no such call" in skipped(calls, "all_reduce.1")
    assert rows and not any(name.startswith("Distributed.") for name in rows)


@pytest.mark.deep
def test_a_broken_or_statistics_dump_of_the_other_rank_is_named(dump, tmp_path):
    path = dump / "rank1" / "dump.json"
    text = path.read_text()
    whole = json.loads(text)
    del whole["data"]["Distributed.all_reduce.0.forward"]["input_args"][0]["data_name"]
    whole["data"]["Distributed.all_gather.0.forward"]["input_args"][1]["data_name"] = "../../../secret.pt"
    whole["data"]["Distributed.broadcast.0.forward"]["input_kwargs"]["src"]["value"] = 9
    whole["data"]["Distributed.all_reduce.7.forward"]["input_kwargs"]["op"]["value"] = "RedOpType.__class__"
    whole["data"]["Distributed.reduce_scatter.0.forward"]["input_args"][1] = {"type": "int", "value": 3}
    path.write_text(json.dumps(whole))
    calls, rows = check(dump, tmp_path / "out")
    assert "has no values of it" in skipped(calls, "all_reduce.0")
    for name in ("all_gather.0", "broadcast.0", "reduce_scatter.0", "all_reduce.7"):
        assert skipped(calls, name)
    assert calls["Distributed.all_reduce.3"][0] == "pass"  # a group that failed is made anew
    path.write_text(text[: len(text) // 3] + "}")
    calls, _ = check(dump, tmp_path / "broken")
    assert skipped(calls, "reduce.0")


@pytest.mark.deep
def test_where_the_number_of_ranks_is_not_known_a_difference_is_no_fault(dump, tmp_path):
    for rank in (0, 1):
        folder = dump / f"rank{rank}"
        (folder / "dump_summary.json").unlink()
        whole = json.loads((folder / "dump.json").read_text())
        kept = {name: op for name, op in whole["data"].items() if "all_reduce" in name}
        (folder / "dump.json").write_text(json.dumps({**whole, "data": kept}))
    change(dump, 0, "Distributed.all_reduce.0.forward.output.0.pt", lambda t: t * 2)
    change(dump, 0, "Distributed.all_reduce.2.forward.output.0.pt", lambda t: t * 2)
    calls, rows = check(dump, tmp_path / "out")
    assert "how many ranks there were" in skipped(calls, "all_reduce.0")
    assert rows["Distributed.all_reduce.2.forward.output.0"]["Verdict"] == "wrong"  # its group is named
    assert calls["Distributed.all_reduce.3"][0] == "pass"

"""--consistent_check of training under Megatron against inference, beside what the old tool makes of the same dumps."""

import csv
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run
from test_compare_golden import METRICS, same_metric

UNMATCHED = '["warning: Bench api/module unmatched."]'


def without_values(item):
    """The dump of statistics of the same run."""
    if isinstance(item, dict):
        return {key: without_values(value) for key, value in item.items() if key != "data_name"}
    return [without_values(one) for one in item] if isinstance(item, list) else item


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("train_infer")
    sides = ("train", "infer")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda side: run_python([HERE / "train_infer_scenario.py", side, root / "tensor" / side]), sides))
    for side in sides:
        (path,) = (root / "tensor" / side).rglob("dump.json")
        dump = without_values(json.loads(path.read_text()))
        to = root / "statistics" / path.relative_to(root / "tensor")
        to.parent.mkdir(parents=True)
        to.write_text(json.dumps({**dump, "task": "statistics"}))
    return root


def arguments(dumps, task, out):
    target, golden = (next((dumps / task / side).rglob("dump.json")) for side in ("train", "infer"))
    return ["compare", "-tp", target, "-gp", golden, "-o", out, "--consistent_check", "--backend", "megatron"]


def rows_of(folder):
    (path,) = Path(folder).glob("*.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_megatron_against_inference(old_python, dumps, task, tmp_path):
    done = run(arguments(dumps, task, tmp_path / "ours"))
    assert "20 matched, 9 only in the target, 5 only in the golden run" in done.stdout
    assert "no such op" not in done.stdout, "modules that only one side has are not a difference"
    args = arguments(dumps, task, tmp_path / "theirs")
    run_python([old_python.parent / "msprobe", *args], python=old_python, ours=False, cwd=tmp_path)
    ours, theirs = rows_of(tmp_path / "ours"), rows_of(tmp_path / "theirs")
    assert len(ours) == len(theirs) == 84 and list(ours[0]) == list(theirs[0])
    alone = 0
    for row, old in zip(ours, theirs):
        lone = row["Bench Name"] == "N/A"
        alone += lone
        for column, cell in row.items():
            if column not in ("Result", "Err_message"):
                same = same_metric(old[column], cell) if column in METRICS else old[column] == cell
                assert same, (row["NPU Name"], column)
        if task == "tensor" and lone:  # the old tool passes them
            assert (row["Result"], row["Err_message"]) == ("warning", UNMATCHED)
        elif task == "tensor":
            assert (row["Result"], row["Err_message"]) == (old["Result"], old["Err_message"])
        else:  # there, every row is an error: inference has no gradients and no dimension of the batch
            assert json.loads(row["Err_message"]) == [
                text
                for text in json.loads(old["Err_message"])
                if "Required_Grad" not in text and "shape of" not in text
            ]
    assert alone == 20
    if task == "statistics":
        assert any("Required_Grad" in old["Err_message"] for old in theirs)


def test_a_wrong_weight_of_inference_is_found(dumps, tmp_path):
    """In the values of linear_fc1, which inference calls gate_up_proj."""
    (path,) = (dumps / "statistics" / "infer").rglob("dump.json")
    dump = json.loads(path.read_text())
    name = next(key for key in dump["data"] if "layers.1.mlp.gate_up_proj" in key)
    for key in ("Max", "Norm"):
        dump["data"][name]["output"][0][key] *= 3
    wrong = tmp_path / "dump.json"
    wrong.write_text(json.dumps(dump))
    args = arguments(dumps, "statistics", tmp_path / "out")
    args[args.index("-gp") + 1] = wrong
    run(args)
    rows = rows_of(tmp_path / "out")
    wrong_rows = [row for row in rows if row["Result"] != "pass"]
    assert {row["NPU Name"].rsplit(".", 4)[0] for row in wrong_rows} == {
        "Module.module.module.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear",
        "Module.module.module.decoder.layers.1.mlp.MLP",  # whose inputs agree
    }

"""Task free_benchmark: calls made again with changed inputs. free_benchmark_rows.json has what mindstudio-probe 8.1.1 wrote for step 0.

Left out are rows of dropout, which mindstudio-probe draws anew, and of `x *= 2`, which it applies to the script's tensor once more.
"""

import csv
import json
from pathlib import Path

import pytest
import torch
from launch import HERE, run_python

ROWS = json.loads((HERE / "free_benchmark_rows.json").read_text())
LISTED = ["Functional.linear.0.backward", "Torch.exp.0.backward", "Functional.gelu.0.backward"]
SECTIONS = {
    **{
        mode: {"pert_mode": mode}
        for mode in ("improve_precision", "add_noise", "bit_noise", "no_change", "change_value")
    },
    "improve_half": {"pert_mode": "improve_precision", "dtype": "bfloat16"},
    "to_cpu": {"pert_mode": "to_cpu", "fuzz_device": "cpu"},
    "to_cpu_half": {"pert_mode": "to_cpu", "fuzz_device": "cpu", "dtype": "bfloat16"},
    "back_noise": {"pert_mode": "change_value", "fuzz_stage": "backward", "list": LISTED},
    "back_half": {"pert_mode": "improve_precision", "fuzz_stage": "backward", "list": LISTED, "dtype": "bfloat16"},
}


def train(root, section, dtype="float32"):
    """What the training computed."""
    given = section if section == "bare" else json.dumps(section)
    run_python([HERE / "free_benchmark_scenario.py", root, given, dtype], env={"OMP_NUM_THREADS": "1"})
    return torch.load(Path(root) / "trained.pt")


def rows(root, step=0):
    found = list(Path(root).glob(f"step{step}/*/free_benchmark.csv"))
    if not found:
        return []
    with open(found[0], newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    root = tmp_path_factory.mktemp("bare")
    return {dtype: train(root / dtype, "bare", dtype) for dtype in ("float32", "bfloat16")}


@pytest.mark.parametrize("name", list(SECTIONS))
def test_rows_and_bits(bare, tmp_path, name):
    section = SECTIONS[name]
    trained = train(tmp_path, section)
    for ours, theirs in zip(trained, bare[section.get("dtype", "float32")]):
        assert torch.equal(ours, theirs)
    found = [row for row in rows(tmp_path) if not any(name in row["api_name"] for name in ("__imul__", "dropout"))]
    assert [[row[key] for key in ("api_name", "dtype", "shape", "output_index")] for row in found] == [
        [call, dtype, shape, index] for call, _, dtype, shape, index in ROWS[name]
    ]
    for row, (_, ratio, *_) in zip(found, ROWS[name]):
        if ratio in ("symbol_flipping", ""):
            assert row["max_rel"] == ratio
        else:
            assert float(row["max_rel"]) == pytest.approx(float(ratio), rel=0.05)
        assert (row["rank"], row["step"], row["stage"]) == ("0", "0", section.get("fuzz_stage", "forward"))


def test_preheat_keeps_the_bits(bare, tmp_path):
    trained = train(tmp_path, {"pert_mode": "add_noise", "if_preheat": True, "preheat_step": 2})
    assert all(torch.equal(a, b) for a, b in zip(trained, bare["float32"])) and rows(tmp_path) == []


def test_fix_gives_the_changed_results(bare, tmp_path):
    fixed = train(tmp_path, {"pert_mode": "improve_precision", "handler_type": "fix", "dtype": "bfloat16"})
    before = bare["bfloat16"]
    assert rows(tmp_path) == [] and fixed[0].dtype == torch.bfloat16
    assert any(not torch.equal(a, b) for a, b in zip(fixed, before))
    assert torch.equal(fixed[-1], before[-1])  # the generator

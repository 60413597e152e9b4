"""An optimizer that steps others in place of itself, as torchtitan's for all parts of a model, counts as those that it holds."""

import csv
import json
import subprocess
import sys

import pytest
from graph_cases import run

SCRIPT = """
import sys
import torch

class Several(torch.optim.Optimizer):
    def __init__(self, optimizers):
        self.optimizers = optimizers
        super().__init__([p for o in optimizers for group in o.param_groups for p in group["params"]], {})

    def step(self, closure=None):
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none=True):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)

torch.manual_seed(3), torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
parts = [model] if sys.argv[1] == "1" else [model[0], model[2]]
optimizer = Several([torch.optim.AdamW(part.parameters(), lr=1e-2) for part in parts])
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
print(sum(p.double().sum() for p in model.parameters()).item().hex())
"""
WEIGHTS = ["0.weight", "0.bias", "2.weight", "2.bias"]


@pytest.fixture(params=["1", "2"])
def script(request, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    return [sys.executable, "script.py", request.param]


@pytest.fixture
def bare(script, tmp_path):
    return subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def test_the_monitor_reads_what_they_hold(script, bare, tmp_path):
    done = run(["monitor", "--output", "monitored", "--csv", "--", *script], cwd=tmp_path)
    assert done.stdout == bare and "[WARNING]" not in done.stderr, done.stderr
    (directory,) = (tmp_path / "monitored").iterdir()
    for metric, first in {"grad_reduced": 0, "param_updated": 0, "exp_avg": 1, "exp_avg_sq": 1}.items():
        rows = []
        for path in directory.glob(f"{metric}_[0-9]*.csv"):
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
        assert sorted({(int(row["step"]), row["name"]) for row in rows}) == sorted(
            (step, name) for step in range(first, 4) for name in WEIGHTS
        )
        assert all(float(row["norm"]) > 0 for row in rows)


def test_each_that_is_held_is_recorded_once(script, bare, tmp_path):
    done = run(["run", "--save-optimizer", "saved", "--", *script], cwd=tmp_path)
    assert done.stdout == bare
    optimizers = sorted(p.name for p in (tmp_path / "saved/rank0").iterdir())
    assert optimizers == [f"optimizer{n}" for n in range(int(script[-1]))]
    told = [json.loads((tmp_path / f"saved/rank0/{o}/step2/optimizer.json").read_text()) for o in optimizers]
    assert [name for one in told for group in one["groups"] for name in group["weights"]] == WEIGHTS
    assert {one["optimizer"] for one in told} == {"AdamW"}


def test_gradients_are_taken_once_a_step(script, bare, tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"task": "grad_probe", "dump_path": "dump", "grad_probe": {"grad_level": "L0"}})
    )
    lines = 'from msprobe.pytorch import PrecisionDebugger\ndebugger = PrecisionDebugger("config.json")\n'
    (tmp_path / "script.py").write_text(
        lines + SCRIPT.replace("optimizer = Sev", "debugger.monitor(model)\noptimizer = Sev")
    )
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == bare
    steps = int(script[-1]) * 4  # each optimizer's step is one
    assert len([*(tmp_path / "dump/rank0").glob("grad_summary_*.csv")]) == steps

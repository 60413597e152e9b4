"""msprobe certify --resume: saves between two micro batches, counts that only an attribute keeps, consequences that are no causes."""

import json
import os
import subprocess
import sys

import pytest
from graph_cases import find_command

HEAD = """
import argparse, os
import numpy as np
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--out")
parser.add_argument("--resume", default="")
args = parser.parse_args()
torch.manual_seed(3); np.random.seed(3)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
PATH = os.path.join(args.out, "state.pt")
saved = torch.load(args.resume, weights_only=False) if args.resume else None
def batch(i): return torch.randn(4, 6, generator=torch.Generator().manual_seed(i))
print("not JSON")
"""
ACCUMULATED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
first = 0
if saved:
    model.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"]); first = saved["batch"]
    if KEEPS:
        for p, g in zip(model.parameters(), saved["gradients"]): p.grad = g
for i in range(first, 16):
    model(batch(i)).square().mean().backward()
    if (i + 1) % 2 == 0:
        optimizer.step(); optimizer.zero_grad()
    if i + 1 == 5:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "batch": i + 1,
                    "gradients": [p.grad for p in model.parameters()]}, PATH)
        torch.save({"batch": i + 1}, os.path.join(args.out, "position.pt"))
"""
OWN = """
class Warm(torch.optim.SGD):
    def __init__(self, *args, **kwargs): super().__init__(*args, **kwargs); self.calls = 0
    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups: group["lr"] = 0.01 * self.calls
        return super().step(closure)
optimizer = Warm(model.parameters(), lr=0.01)
first = 0
if saved:
    model.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"]); first = saved["step"]
for step in range(first, 7):
    model(batch(step)).square().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    if step + 1 == 2: torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2}, PATH)
"""
NOISE = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if saved: model.load_state_dict(saved["model"]); first = saved["step"]
for step in range(first, 7):
    model(batch(step) + torch.from_numpy(np.random.standard_normal((4, 6)).astype("f4"))).square().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    if step + 1 == 2: torch.save({"model": model.state_dict(), "step": 2}, PATH)
"""
AVERAGED = """
class Average:
    def __init__(self): self.count, self.weights = 0, [p.detach().clone() for p in model.parameters()]
    def update(self):
        self.count += 1
        for kept, p in zip(self.weights, model.parameters()): kept.lerp_(p.detach(), 1 / (1 + self.count))
    def state_dict(self): return {"weights": self.weights}
    def load_state_dict(self, state): self.weights = state["weights"]
average = Average()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if saved: model.load_state_dict(saved["model"]); average.load_state_dict(saved["average"]); first = saved["step"]
for step in range(first, 7):
    model(batch(step)).square().mean().backward()
    optimizer.step(); optimizer.zero_grad(); average.update()
    if step + 1 == 2: torch.save({"model": model.state_dict(), "average": average.state_dict(), "step": 2}, PATH)
"""


def certify(tmp_path, script, code, save_at="2"):
    """The certificate: what standard output holds, alone."""
    (tmp_path / "train.py").write_text(HEAD + script)
    asked = [
        "--resume",
        "--save-at",
        save_at,
        "--steps",
        "2",
        "--resume-args",
        "--resume {dir}/state.pt",
        "-o",
        "out",
        "--json",
    ]
    done = subprocess.run(
        [find_command(), "certify", *asked, "--", sys.executable, "train.py", "--out", "{dir}"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr[-2000:]
    assert "not JSON" in done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize("keeps", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_save_between_two_micro_batches_is_reached(tmp_path, keeps):
    certificate = certify(tmp_path, f"KEEPS = {keeps}\n{ACCUMULATED}", code=0 if keeps else 1)
    assert certificate["saved_inside_of_a_step"]
    (rank,) = certificate["ranks"]
    if keeps:
        assert certificate["outcome"] == "equal" and rank["steps"] >= 2
    else:
        assert [state["kind"] for state in rank["lost"]] == ["gradient"] and rank["lost"][0]["count"] == 4


@pytest.mark.deep
def test_a_run_that_ends_before_it_saves_is_told(tmp_path):
    said = certify(tmp_path, f"KEEPS = False\n{ACCUMULATED.replace('== 5', '== 6')}", code=3)
    assert "no checkpoint was written before the run was ended" in said and "--save-at 3" in said


def test_a_count_that_is_an_attribute_of_an_optimizer_is_named(tmp_path):
    (rank,) = certify(tmp_path, OWN, code=1)["ranks"]
    assert any(state["example"] == "optimizer.calls" for state in rank["lost"])


def test_a_count_that_an_object_does_not_save_is_named_where_its_state_follows_from_it(tmp_path):
    (rank,) = certify(tmp_path, AVERAGED, code=1)["ranks"]
    (lost,) = rank["lost"]
    assert [name["name"] for name in lost["names"]] == ["average.count"] and (lost["was"], lost["is"]) == ("2", "0")
    assert "average.weights.0" in lost["explanation"] and rank["difference_after_resume"] is None


def test_a_batch_that_follows_from_a_lost_generator_is_no_cause(tmp_path):
    (rank,) = certify(tmp_path, NOISE, code=1)["ranks"]
    assert [(state["kind"], state["example"]) for state in rank["lost"]] == [("random", "numpy")]
    assert any("follows from the random state" in text for text in rank["unjudged"])


@pytest.mark.parametrize(("word", "command"), [("resume", "certify --resume"), ("anatomy", "compare")])
def test_the_name_of_a_part_leads_to_its_command(word, command):
    done = subprocess.run([find_command(), word, "x"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"did you mean 'msprobe {command}" in done.stderr

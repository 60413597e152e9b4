"""A step that is given a closure computes its gradients in it: every tool sees what the same training without one shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MSPROBE = Path(sys.executable).with_name("msprobe")
SCRIPT = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def gradients(x):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return loss
for x in torch.randn(4, 32, 8):
    if sys.argv[1] == "positional":
        optimizer.step(lambda: gradients(x))
    elif sys.argv[1] == "named":
        optimizer.step(closure=lambda: gradients(x))
    else:
        gradients(x)
        optimizer.step()
"""
TOOLS = {
    "monitor": ("monitor", "--csv", "--output", "out"),
    "gradients": ("run", "--save-grads", "out"),
    "optimizer": ("run", "--save-optimizer", "out"),
    "dump": ("run", "--dump-path", "out", "--level", "mix", "--step", "0-3"),
}


def run(directory, *command):
    done = subprocess.run(
        [MSPROBE, *command], cwd=directory, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """run of (tool, way) -> (its directory, what it said)."""
    root, known = tmp_path_factory.mktemp("closures"), {}

    def made(tool, way):
        if (tool, way) not in known:
            directory = root / tool / way
            directory.mkdir(parents=True)
            (directory / "train.py").write_text(SCRIPT)
            known[tool, way] = directory, run(directory, *TOOLS[tool], "--", sys.executable, "train.py", way)
        return known[tool, way]

    return made


def names(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def tables(directory):
    (out,) = (directory / "out").iterdir()
    return {path.name: path.read_text() for path in out.glob("*.csv")}


@pytest.mark.parametrize("way", ["positional", "named"])
def test_the_monitor_takes_the_gradients_that_are_used(runs, way):
    """Also at the first step, in whose closure the model is found."""
    (plain, _), (own, said) = runs("monitor", "plain"), runs("monitor", way)
    assert tables(own) == tables(plain) and "grad_reduced_0-0.csv" in tables(own)
    assert "0 broken" in said and "no value" not in said


@pytest.mark.parametrize("way", ["positional", "named"])
def test_saved_gradients_are_those_that_are_used(runs, way):
    (plain, _), (own, _) = runs("gradients", "plain"), runs("gradients", way)
    assert names(own / "out") == names(plain / "out") != []
    said = run(own, "optimizer_replay", runs("optimizer", way)[0] / "out")
    assert "does what its hyperparameters say" in said and "3 steps" in said
    for name in names(plain / "out"):
        if name.endswith(".safetensors"):
            assert (own / "out" / name).read_bytes() == (plain / "out" / name).read_bytes(), name


def test_a_dump_has_the_same_ops(runs):
    (plain, _), (own, _) = runs("dump", "plain"), runs("dump", "positional")
    said = run(own, "compare", "-tp", "out", "-gp", plain / "out", "-o", "result")
    assert said.startswith("No difference: all "), said[:500]

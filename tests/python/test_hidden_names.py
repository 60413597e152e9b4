"""A release or a build that lacks a module of PyTorch: a training ends as it does without us, whichever it is.

Each is hidden from msprobe alone, which finds neither the module nor the attribute.
"""

from pathlib import Path

import pytest
from launch import run_python

SCRIPT = Path(__file__).parent / "hidden_names_scenario.py"
NAMES = ("torch.compiler", "torch._dynamo", "torch.distributed", "torch.nn.attention", "torch.utils._pytree")


def train(hidden, mode, directory):
    done = run_python([SCRIPT, hidden, mode, directory], env={"MONITOR_OUTPUT_DIR": str(directory / "rows")})
    told = [line for line in done.stderr.splitlines() if "[ERROR]" in line or "lost" in line]
    assert not told, told
    return [line for line in done.stdout.splitlines() if line.startswith("RESULT")]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return train("-", "bare", tmp_path_factory.mktemp("bare"))


@pytest.mark.parametrize("mode", ["run", "monitor"])
@pytest.mark.parametrize("hidden", NAMES)
def test_a_training_ends_as_without_us(tmp_path, bare, hidden, mode):
    assert train(hidden, mode, tmp_path) == bare and len(bare) == 1
    if mode == "run":
        sizes = [path.stat().st_size for path in tmp_path.glob("step*/rank*/dump.json")]
        assert len(sizes) == 2 and min(sizes) > 100_000, sizes
    else:
        rows = [path.read_text().count("\n") for path in (tmp_path / "rows").rglob("*.csv")]
        assert len(rows) >= 4 and min(rows) > 20, rows

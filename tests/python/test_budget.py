"""The budget: never more bytes than it allows, less captured rung by rung, and everything left out is named."""

import json
import os
from pathlib import Path

import pytest
from capture_helpers import write_config
from launch import run_python

SCRIPT = """
import sys, time
import torch
from msprobe.pytorch import PrecisionDebugger
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
debugger = PrecisionDebugger("config.json")
slow = len(sys.argv) > 1
for step in range(12):
    begin = time.perf_counter()
    debugger.start(model)
    loss = model(torch.randn(256, 64)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if slow and debugger._active:
        time.sleep(0.2 + 4 * (time.perf_counter() - begin))  # as a capture that costs this much
    debugger.stop()
    debugger.step()
    optimizer.zero_grad()
    print(loss.item().hex())
"""


def train(directory: Path, *args, budget=None, **config):
    directory.mkdir(exist_ok=True)
    keys = {"budget": budget} if budget else {}
    write_config(directory, level="mix", **keys, **config)
    (directory / "script.py").write_text(SCRIPT)
    return run_python(["script.py", *args], cwd=directory)


def steps(directory: Path) -> list:
    """Of each recorded step: its number, names of its ops, names of its tensor files."""
    found = []
    for rank in sorted((directory / "dump").glob("step*/rank"), key=lambda path: int(path.parent.name[4:])):
        names = list(json.loads((rank / "dump.json").read_text())["data"])
        found.append((int(rank.parent.name[4:]), names, [path.name for path in rank.rglob("*.pt")]))
    return found


def used(directory: Path) -> int:
    """By what was recorded; the summaries and the log are not counted."""
    kept = ("dump.json", "stack.json", "construct.json")
    found = [path for path in (directory / "dump").rglob("*") if path.suffix == ".pt" or path.name in kept]
    return sum({path.stat().st_ino: path.stat().st_size for path in found}.values())


def test_the_disk_is_a_bound(tmp_path):
    free = train(tmp_path / "free", task="tensor", step=["0-11"])
    whole = used(tmp_path / "free")
    for part in (0.9, 0.5, 0.2, 0.02):
        directory = tmp_path / f"part{part}"
        budget = int(whole * part)
        done = train(directory, task="tensor", step=["0-11"], budget={"disk": budget})
        assert done.stdout == free.stdout  # the training is the same
        assert used(directory) <= budget, part
        assert ("budget: from step 0 only" if part == 0.02 else "budget: after step") in done.stderr, part
        for _, names, _ in steps(directory):
            assert isinstance(names, list)
    # Something of every step is kept as long as statistics fit.
    kept = steps(tmp_path / "part0.5")
    assert [step for step, *_ in kept] == list(range(12))
    assert kept[0][2] and not [name for name in kept[-1][2] if not name.startswith("Module.")]
    log = (tmp_path / "part0.5" / "dump" / "step11" / "rank" / "dump_error_info.log").read_text()
    assert "the budget leaves" in log
    assert (
        "the budget leaves"
        in train(tmp_path / "again", task="tensor", step=["0-11"], budget={"disk": whole // 2}).stderr
    )


def test_slow_steps_are_tightened(tmp_path):
    done = train(tmp_path, "slow", task="statistics", budget={"slowdown": 2})
    recorded = steps(tmp_path)
    numbers = [step for step, *_ in recorded]
    assert 1 not in numbers and 3 not in numbers and "step 1 is not recorded" in done.stderr
    assert any("Functional" in name for name in recorded[0][1])
    assert "recorded steps take" in done.stderr and numbers[-1] < 11  # down to nothing
    last = recorded[-1][1]
    assert last and all(name.startswith("Module.") for name in last)


@pytest.mark.parametrize(
    "budget, word",
    [
        ({"disk": "much"}, "budget.disk"),
        ({"disk": 0}, "budget.disk"),
        ({"slowdown": 0.5}, "budget.slowdown"),
        ({"size": 1}, "budget is"),
        ("20GB", "budget is"),
    ],
)
def test_a_wrong_budget(budget, word, tmp_path):
    from msprobe._capture.config import MsprobeException, load_config

    path = write_config(tmp_path, budget=budget)
    with pytest.raises(MsprobeException, match=word):
        load_config(os.fspath(path))


def test_sizes():
    from msprobe._capture.config.sizes import parse_size

    sizes = {"20GB": 20 * 10**9, "1.5 MiB": 3 * 2**19, "7": 7, 12: 12, "2kB": 2000, "1TB": 10**12, "3K": None, "": None}
    assert {text: parse_size(text) for text in sizes} == sizes
    assert [parse_size(value) for value in (0, -1, True, 1.5, "-1GB", "1e3", None)] == [None] * 7

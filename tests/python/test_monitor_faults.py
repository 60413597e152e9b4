"""Monitors that meet a fault: a sample of publish_monitor_faults.py, whose table is in docs/en/monitor/README.md."""

import json
import os
import subprocess
import sys

from conftest import REPO, missing
from graph_cases import find_command
from launch import PACKAGE_ROOT
from msprobe import _core


def test_kills_and_faults(tmp_path):
    mounted = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if mounted.returncode != 0:
        missing("file systems of the test's own need root and mount")
    script = REPO / "tests" / "python" / "publish_monitor_faults.py"
    done = subprocess.run(
        ["unshare", "-m", sys.executable, script, tmp_path / "out", "3"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as it should be") == 8


RANK = """
import json, os, signal, sys
import torch
import torch.distributed as dist
from msprobe.pytorch import TrainerMon

rank, place = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + place + "/rendezvous", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.AdamW(model.parameters())
monitor = TrainerMon(place + "/config.json", None, params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
for step in range(20):
    model(torch.randn(2, 4)).sum().backward()  # waits for the other rank
    optimizer.step()
    optimizer.zero_grad()
    if (rank, step) == (1, 5):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_rank_that_dies_is_named_and_its_steps_are_there(tmp_path):
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "config.json").write_text('{"targets": {}, "wg_distribution": true, "ops": ["norm"]}')
    out = tmp_path / "out"
    environment = {
        **os.environ,
        "MONITOR_OUTPUT_DIR": str(out),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(PACKAGE_ROOT),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "rank.py", str(rank), str(tmp_path)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[1].decode() for rank in ranks]
    assert ranks[1].returncode == -9 and ranks[0].returncode == 1
    assert "closed by peer" in said[0].lower() or "connection" in said[0].lower(), "the error is that of the training"
    status = subprocess.run([find_command(), "monitor", "status", out, "--json"], capture_output=True, text=True)
    assert status.returncode == 1, status.stderr
    first, second = json.loads(status.stdout)["ranks"]
    assert (first["state"], second["state"]) == ("ended", "running")
    assert second["findings"][0] == "its process is gone without an end report: it was killed or it crashed"
    assert not any("gone" in finding for finding in first["findings"])
    series = _core.read_series(os.path.join(second["directory"], "monitor.series"))["series"]
    assert len(series) == 4
    for one in series:
        assert [step for step, _ in one["columns"]["norm"]] == [*range(6)], "what was written outlives the process"
    told = subprocess.run([find_command(), "monitor", "status", out], capture_output=True, text=True)
    assert "rank 1: running" in told.stdout and "gone without an end report" in told.stdout

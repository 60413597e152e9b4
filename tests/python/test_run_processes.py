"""msprobe run and estimate over several processes: torchrun, and processes that know nothing of each other."""

import json
import sys

from test_estimate import estimate
from test_run_command import SMALL, entries, run, write_config

RANK = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40 if "LONG" in os.environ else 2):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(f"rank {dist.get_rank()} ends\\n", end="")
dist.destroy_process_group()
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ddp.py"]


def test_torchrun(tmp_path, monkeypatch):
    """Every rank attaches; the process that starts them trains nothing and records nothing."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    write_config(tmp_path, level="L0", seed=3)
    (tmp_path / "ddp.py").write_text(RANK)
    done = run(TORCHRUN, "-c", "config.json", "--step", "1", cwd=tmp_path)
    assert done.returncode == 0 and sorted(done.stdout.split("\n")) == ["", "rank 0 ends", "rank 1 ends"], done.stderr
    assert [path.name for path in (tmp_path / "dump").iterdir()] == ["step1"]
    assert sorted(path.name for path in (tmp_path / "dump" / "step1").iterdir()) == ["rank0", "rank1"]
    ranks = [entries(tmp_path / "dump" / "step1" / rank) for rank in ("rank0", "rank1")]
    assert list(ranks[0]) == list(ranks[1]) and "Module.module.0.Linear.forward.0" in ranks[0]
    assert "nothing" not in done.stderr

    monkeypatch.setenv("LONG", "1")
    priced = estimate("-c", "config.json", "--steps", "1", "--json", cwd=tmp_path, program=TORCHRUN)
    assert priced.returncode == 0, priced.stderr
    result = json.loads(priced.stdout.splitlines()[-1])
    assert result["ranks"] == 2 and [kind["files"] for kind in result["kinds"]] == [6] and "ends" not in priced.stdout


def test_processes_without_ranks_do_not_share_a_directory(tmp_path):
    write_config(tmp_path, level="L0")
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "train.py").write_text(SMALL + "import sys\ntrain()\nprint(len(sys.stdin.read()))\n")
    # Both are in their first step at the same time: each waits for its input when it has trained; a third one follows.
    pair = (
        "mkfifo a b; $0 train.py < a & first=$!; exec 8> a; $0 train.py < b & second=$!; exec 9> b; "
        "until [ $(ls -d dump/step0/*/dump.json 2> /dev/null | wc -l) = 2 ]; do sleep 0.05; done; "
        "exec 8>&- 9>&-; wait $first && wait $second && $0 train.py < /dev/null"
    )
    done = run(["bash", "-c", pair, sys.executable], "-c", "config.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0\n" * 3), done.stderr
    assert done.stderr.count("another process that runs has step*/rank") == 1
    assert done.stderr.count("an earlier process of this run has step*/rank") == 1
    dumps = sorted((tmp_path / "dump" / "step0").glob("*/dump.json"))
    assert len(dumps) == 3 and dumps[-1].parent.name == "rank"
    assert {len(entries(dump.parent)) for dump in dumps} == {5}

    # An earlier run's dump is replaced, as that of a single process is.
    before = dumps[-1].stat().st_mtime_ns
    again = run([sys.executable, "-c", "import small; small.train()"], "-c", "config.json", cwd=tmp_path)
    assert again.returncode == 0 and "this process records below" not in again.stderr, again.stderr
    assert sorted((tmp_path / "dump" / "step0").glob("*/dump.json")) == dumps
    assert dumps[-1].stat().st_mtime_ns > before

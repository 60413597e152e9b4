"""Files that cannot be written any more, a rank that dies: the training goes on, and what was flushed is whole."""

import errno
import json
import os
import shutil
import socket
import subprocess

import pytest
from capture_helpers import PRELUDE, capture, write_config
from launch import HERE, run_python
from test_capture_safety import command

TRAIN = """
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(16, 32)
for step in range(3):
    debugger.start(model=model)
    for _ in range(20):
        model(x).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    debugger.stop()
    debugger.step()
print("WEIGHT", model[0].weight.double().sum().item().hex())
"""


@pytest.fixture(scope="module")
def failing_writes(tmp_path_factory):
    library = tmp_path_factory.mktemp("preload") / "failing_writes.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need a C compiler: install gcc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "failing_writes.c", "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def weight(tmp_path_factory):
    return weight_of(capture(tmp_path_factory.mktemp("whole"), TRAIN, level="mix").script)


def weight_of(script):
    return next(line for line in script.stdout.splitlines() if line.startswith("WEIGHT"))


@pytest.fixture
def fail(failing_writes, monkeypatch):
    """Lets writes below a directory fail in the scripts that are run from now on, once some bytes are written there."""

    def begin(below, after, code):
        for name, value in {
            "FAIL_BELOW": below,
            "FAIL_AFTER": after,
            "FAIL_WITH": code,
            "LD_PRELOAD": failing_writes,
        }.items():
            monkeypatch.setenv(name, str(value))

    yield begin


CODES = pytest.mark.parametrize("code", [errno.EIO, errno.EDQUOT, errno.EROFS], ids=lambda c: errno.errorcode[c])


def output_of(dump, weight, code):
    assert weight_of(dump.script) == weight
    output = dump.script.stdout + dump.script.stderr
    assert "Traceback" not in output
    assert 2 <= output.count(os.strerror(code)) <= 8  # when it happens, and in the summary of each step
    return output


@CODES
def test_ops_that_cannot_be_written(code, fail, weight, tmp_path, monkeypatch):
    fail(tmp_path / "dump", 1_200_000, code)
    dump = capture(tmp_path, TRAIN, level="mix")
    monkeypatch.delenv("LD_PRELOAD")
    output_of(dump, weight, code)
    # What reached the disk can be finished and read.
    command("recover", tmp_path / "dump" / "step0")
    assert len(dump.names(0)) > 500


@CODES
def test_tensors_that_cannot_be_written(code, fail, weight, tmp_path):
    tensors = tmp_path / "dump/step0/rank/dump_tensor_data"
    fail(tensors, 200_000, code)
    dump = capture(tmp_path, TRAIN, level="mix", task="tensor")
    output_of(dump, weight, code)
    items = [item for entry in dump.data(0).values() for item in entry.get("output", []) if item]
    assert len(dump.names(0)) > 500 and all("Max" in item for item in items if item["type"] == "torch.Tensor")
    assert 0 < len(list(tensors.glob("*.pt"))) < len(items)


def test_a_rank_that_is_killed(tmp_path):
    """The others' dumps are whole, its own can be finished."""
    body = """
import os, signal, time
import torch.distributed as dist
import torch.multiprocessing as mp

def flushed():
    with open("dump/step0/rank1/dump_summary.json") as f:
        return json.load(f)["ops"]

def work(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="%PORT%", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    from msprobe.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(config_path="config.json")
    model = nn.Linear(64, 64)
    debugger.start(model=model)
    for i in range(300):
        y = F.relu(model(torch.ones(8, 64)))
    dist.all_reduce(y)
    if rank == 1:
        until = time.monotonic() + 60
        while flushed() < 600 and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
    os._exit(0)

if __name__ == "__main__":
    processes = [mp.get_context("spawn").Process(target=work, args=(rank,)) for rank in range(2)]
    [p.start() for p in processes]
    [p.join() for p in processes]
    print("CODES", [p.exitcode for p in processes])
"""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    write_config(tmp_path, level="mix")
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + body.replace("%PORT%", str(port)))
    done = run_python([script], cwd=tmp_path, fresh=True)
    assert "CODES [0, -9]" in done.stdout
    command("verify-dump", tmp_path / "dump", code=1)
    command("recover", tmp_path / "dump")
    step = tmp_path / "dump" / "step0"
    whole = json.loads((step / "rank0" / "dump.json").read_text())["data"]
    finished = json.loads((step / "rank1" / "dump.json").read_text())["data"]
    assert "Distributed.all_reduce.0.forward" in whole
    assert len(finished) > 500 and list(finished) == list(whole)[: len(finished)]

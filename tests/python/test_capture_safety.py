"""Never in the way: whatever ends the run or refuses the files, the training goes on with the same bits, and what was
reported flushed is there."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from capture_helpers import PRELUDE, capture
from launch import run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command

FILES = ("dump.json", "stack.json", "construct.json")


def command(*args, code=0):
    done = subprocess.run(
        [str(find_command()), *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def summary(directory):
    return json.loads((directory / "dump_summary.json").read_text())


def kinds(directory, code=1, notes=False):
    checked = json.loads(command("verify-dump", directory, "--json", code=code))
    return {f["kind"] for rank in checked["ranks"] for f in rank["findings"] if f["note"] == notes}


# ---- a killed run

KILLED = """
import os, signal, time
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
x = torch.randn(2, 4)
debugger.start(model=net, rank_id=0)
net(x).sum().backward()
debugger.stop()
debugger.step()
debugger.start(model=net)
for _ in range(1200):
    net(x)
until = time.monotonic() + 60
while time.monotonic() < until and json.load(open("dump/step1/rank0/dump_summary.json"))["ops"] < 2000:
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    dump = capture(tmp_path_factory.mktemp("killed"), KILLED, level="mix", check=False)
    assert dump.script.returncode == -9
    # A kill inside a write leaves a part of it and no closing braces.
    for name in FILES:
        path = dump.directory(1, "rank0") / name
        text = path.read_text()
        tail = "\n }\n}" if name == "dump.json" else "\n}"
        path.write_text(text.removesuffix(tail) + ',\n "Tensor.cut.0.forward": [\n  [')
    return dump


def test_a_killed_run_is_finished_by_recover(killed, old_python, tmp_path):
    whole, cut = killed.directory(0, "rank0"), killed.directory(1, "rank0")
    assert summary(whole)["state"] == "complete" and kinds(whole, code=0) == set()
    reported = summary(cut)["ops"]
    assert reported >= 2000 and summary(cut)["state"] == "recording"
    assert {"truncated", "unfinished"} <= kinds(cut)

    assert "process" not in command("recover", killed.root)
    for name in FILES:
        json.loads((cut / name).read_text())
        assert (cut / (name + ".damaged")).exists()
    ops = list(killed.data(1, "rank0"))
    assert len(ops) >= reported
    stacks = {name for names, _ in killed.json("stack.json", 1, "rank0").values() for name in names}
    construct = killed.construct(1, "rank0")
    assert [op for op in ops[:reported] if op not in stacks or op not in construct] == []
    assert summary(cut)["state"] == "recovered"

    before = {path: path.stat().st_mtime_ns for path in killed.root.rglob("*")}
    assert all(not rank["changed"] for rank in json.loads(command("recover", killed.root, "--json"))["ranks"])
    assert {path: path.stat().st_mtime_ns for path in killed.root.rglob("*")} == before

    command("compare", "-tp", cut, "-gp", cut, "-o", tmp_path / "ours", code=3)  # the run was cut
    old = old_python.parent / "msprobe"
    paths = ["-tp", cut / "dump.json", "-gp", cut / "dump.json", "-o", tmp_path / "theirs"]
    run_python([old, "compare", *paths], python=old_python, ours=False, cwd=tmp_path)
    table = next((tmp_path / "theirs").glob("*.*"))
    assert table.stat().st_size > 1000
    graph = [old, "graph_visualize", "-tp", cut, "-gp", cut, "-o", tmp_path / "graph"]
    run_python(graph, python=old_python, ours=False, cwd=tmp_path)
    (database,) = (tmp_path / "graph").glob("*.vis.db")
    with sqlite3.connect(database) as opened:
        nodes = {name for (name,) in opened.execute("SELECT node_name FROM tb_nodes")}
    assert set(ops) <= nodes


# ---- a full disk

DISK = """
import os, shutil
debugger.start()
x = torch.ones(3)
for _ in range(3000):
    x = torch.mul(x, 1.0001)
debugger.stop()
debugger.step()
debugger.start()
y = torch.add(x, 1)
debugger.stop()
debugger.step()
shutil.rmtree(json.load(open("config.json"))["dump_path"] + "/step0")
debugger.start()
y = torch.add(y, 1)
debugger.stop()
debugger.step()
print("bits", x.numpy().tobytes().hex(), y.numpy().tobytes().hex())
"""


def test_a_full_disk_ends_the_recording_and_not_the_training(tmp_path, small_disk):
    done = capture(tmp_path / "full", DISK, dump_path=str(small_disk / "d"), step=[0, 1, 2, 3], check=False)
    free = capture(tmp_path / "free", DISK)
    assert done.script.returncode == 0, done.script.stderr
    assert done.script.stdout == free.script.stdout and "bits" in free.script.stdout
    assert done.script.stderr.count("No space left on device") <= 3  # of each kind one warning
    assert "WARNING" in done.script.stderr and "ERROR" not in done.script.stderr
    # Space came back: the last step is complete.
    last = small_disk / "d" / "step2" / "rank"
    assert summary(last)["state"] == "complete" and summary(last)["ops"] == 1
    assert kinds(last, code=0) == set()


FULL = """
debugger.start()
x = torch.ones(3)
for _ in range(3000):
    x = torch.mul(x, 1.0001)
debugger.stop()
debugger.step()
"""


def test_what_was_flushed_before_the_disk_was_full_is_valid(tmp_path, small_disk):
    done = capture(tmp_path, FULL, dump_path=str(small_disk / "d"))
    rank = small_disk / "d" / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    assert list(data) == [f"Torch.mul.{i}.forward" for i in range(len(data))]
    state = summary(rank)
    assert state["ops"] == len(data) > 500 and state["ops"] + state["ops_not_written"] == 3000
    assert "No space left" in state["stopped"]["ops"]
    json.loads((rank / "stack.json").read_text())
    assert kinds(rank) == {"ops_not_written"}
    assert f"captured {len(data)} of 3000 ops" in done.script.stderr


# ---- the ways in which a process ends, and refuses

ENDS = """
import os, resource, shutil, signal, subprocess
from msprobe.pytorch import PrecisionDebugger
config = json.load(open("config.json"))

def loop(count):
    x = torch.ones(3)
    for _ in range(count):
        x = torch.mul(x, 1.0001)
    return x

def end_exit(): sys.exit(7)
def end__exit(): os._exit(8)
def end_abort(): os.abort()
def end_terminate(): os.kill(os.getpid(), signal.SIGTERM)
def end_interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    signal.raise_signal(signal.SIGINT)

def end_handler():
    seen = []
    handler = lambda *_: seen.append(1)
    signal.signal(signal.SIGTERM, handler)
    os.kill(os.getpid(), signal.SIGTERM)
    loop(600)
    assert seen and signal.getsignal(signal.SIGTERM) is handler

def end_exec():
    pid = os.fork()
    if pid == 0:
        loop(10)
        os.execv("/bin/sh", ["sh", "-c", "ls -l /proc/self/fd | grep -c dump.json"])
    assert os.waitpid(pid, 0)[1] == 256  # grep found none
    assert subprocess.run(["true"]).returncode == 0

def end_deleted():
    shutil.rmtree(config["dump_path"])
    loop(3000)

def end_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000))
    loop(6000)

def end_files():
    debugger.stop(), debugger.step()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), 4096))
    for _ in range(2):
        debugger.start()
        loop(5)
        debugger.stop(), debugger.step()

def end_disk_of_zero():
    debugger.stop(), debugger.step()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    debugger.start()
    loop(5)
    debugger.stop(), debugger.step()

for name in sorted(key[4:] for key in list(globals()) if key.startswith("end_")):
    pid = os.fork()
    if pid:
        status = os.waitpid(pid, 0)[1]
        print(name, os.WTERMSIG(status) * -1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
        continue
    config["dump_path"] += "/" + name
    json.dump(config, open(name + ".json", "w"))
    error = os.open(name + ".err", os.O_WRONLY | os.O_CREAT)
    os.dup2(error, 1), os.dup2(error, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    debugger = PrecisionDebugger(name + ".json")
    debugger.start()
    loop(1500)
    debugger.stop()  # 1500 ops are reported flushed
    debugger.start()
    loop(700)
    globals()["end_" + name]()
    sys.exit(0)
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ends")
    config = {"task": "statistics", "level": "L1", "dump_path": str(directory / "dump")}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "script.py").write_text(PRELUDE + ENDS)
    # With buffers, as a training has them: what stays in one is written again when the interpreter ends.
    done = run_python([directory / "script.py"], cwd=directory, env={"PYTHONUNBUFFERED": ""})
    codes = dict(line.split() for line in done.stdout.splitlines())
    return directory, {name: int(code) for name, code in codes.items()}


def test_the_process_ends_as_without_the_tool(ends):
    expected = {"exit": 7, "_exit": 8, "abort": -6, "terminate": -15, "interrupt": -2, "handler": 0, "exec": 0}
    expected |= {"deleted": 0, "size": 0, "files": 0, "disk_of_zero": 0}
    errors = {
        name: (ends[0] / f"{name}.err").read_text()[-1500:] for name in expected if ends[1][name] != expected[name]
    }
    assert ends[1] == expected, errors


@pytest.mark.parametrize("name", ["exit", "_exit", "abort", "terminate", "interrupt", "handler", "exec", "files"])
def test_what_was_flushed_is_there(ends, name):
    rank = ends[0] / "dump" / name / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    finished = name in ("exit", "interrupt", "handler", "exec", "files")
    count = 2800 if name == "handler" else 2200
    assert len(data) == count if finished else len(data) >= 1500
    state = summary(rank)
    assert state["state"] == ("complete" if finished else "recording") and state["ops"] <= len(data)
    for other in FILES[1:]:
        json.loads((rank / other).read_text())
    # Killed inside a flush, or not: the same result.
    assert kinds(rank, code=0 if finished else 1) == (set() if finished else {"unfinished"})


def test_refused_files_are_told_once(ends):
    told = {name: (ends[0] / f"{name}.err").read_text() for name in ends[1]}
    assert told["deleted"].count("was deleted while it was written") == told["deleted"].count("WARNING") == 2
    assert "Too many open files" in told["files"] and told["files"].count("[ERROR]") == 1
    assert not list((ends[0] / "dump" / "disk_of_zero" / "step1").rglob("*.json*"))
    rank = ends[0] / "dump" / "size" / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    state = summary(rank)
    assert 1500 <= len(data) == state["ops"] < 8200 and state["ops"] + state["ops_not_written"] == 8200
    assert "File too large" in state["stopped"]["ops"]

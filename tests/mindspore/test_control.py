"""Switching a running capture of MindSpore, and its budget: what PyTorch has, by the same code."""

import json

from launch import run_mindspore

SCRIPT = """
import json, os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from msprobe.mindspore import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
path, dump = sys.argv[1:3]
def write(**config):
    with open(path + ".new", "w") as file:
        json.dump({"task": "statistics", "level": "L0", "dump_path": dump, **config}, file)
    os.replace(path + ".new", path)
def step():
    debugger.start(net); net(x); debugger.stop(); debugger.step()
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU())
x = Tensor(np.ones((64, 64), np.float32))
"""
RELOAD = """
write(dump_enable=False)
debugger = PrecisionDebugger(config_path=path)
debugger._watch._checked = -1e9; step()
write(dump_enable=True)
debugger._maybe_reload_config(force=True); step()
write(dump_enable=True, level="mix")
debugger._maybe_reload_config(force=True); step()
"""
BUDGET = """
write(task="tensor", budget={"disk": "60 kB"})
debugger = PrecisionDebugger(config_path=path)
for _ in range(4): step()
"""


def run(tmp_path, python, script):
    command = [python, "-c", SCRIPT + script, tmp_path / "config.json", tmp_path / "dump"]
    done = run_mindspore(command, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    dumps = sorted((tmp_path / "dump").glob("step*/rank/dump.json"))
    return {path.parent.parent.name: json.loads(path.read_text()) for path in dumps}, done.stderr


def test_a_running_capture_is_switched(tmp_path, mindspore_python):
    dumps, _ = run(tmp_path, mindspore_python, RELOAD)
    assert list(dumps) == ["step1", "step2"]
    assert [dump["level"] for dump in dumps.values()] == ["L0", "mix"]
    assert not any(name.startswith("Primitive") for name in dumps["step1"]["data"])
    assert any(name.startswith("Primitive") for name in dumps["step2"]["data"])


def test_budget_of_the_disk(tmp_path, mindspore_python):
    _, log = run(tmp_path, mindspore_python, BUDGET)
    assert "budget:" in log
    kept = ("dump.json", "stack.json", "construct.json")  # summaries and the log are outside the budget
    files = [path for path in (tmp_path / "dump").rglob("*") if path.suffix == ".npy" or path.name in kept]
    assert any(path.suffix == ".npy" for path in files)
    assert sum({path.stat().st_ino: path.stat().st_size for path in files}.values()) <= 60_000

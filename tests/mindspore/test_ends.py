"""However a recorded MindSpore script ends, what was flushed is there, and a full disk does not end the training."""

import json
import signal
import subprocess

import pytest
from launch import run_mindspore

FILES = ("dump.json", "stack.json", "construct.json")
SCRIPT = """
import json, os, signal, sys, time
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, ops
from msprobe.mindspore import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
dump, ending = sys.argv[1:3]
x = Tensor(np.full(3, 0.5, np.float32))
def loop(count):
    global x
    for _ in range(count):
        x = ops.tanh(x)
if dump:
    debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=dump)
    debugger.start()
loop(2000)
if dump and ending != "whole":
    summary = dump + "/step0/rank/dump_summary.json"
    until = time.monotonic() + 60
    while json.load(open(summary))["ops"] < 1000 and time.monotonic() < until:
        time.sleep(0.05)
if ending == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if ending == "interrupted":
    os.kill(os.getpid(), signal.SIGINT)
    loop(10**6)
debugger.stop()
debugger.step()
print("BITS", x.asnumpy().tobytes().hex())
"""


def run(python, dump, ending):
    return run_mindspore([python, "-c", SCRIPT, dump, ending], timeout=180, fresh=ending == "interrupted")


def verified(python, dump):
    command = [python.parent / "msprobe", "verify-dump", dump, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return {f["kind"] for rank in json.loads(done.stdout)["ranks"] for f in rank["findings"] if not f["note"]}


def recovered(python, dump):
    """Finishes the dump and looks at what it holds."""
    assert "unfinished" in verified(python, dump)
    subprocess.run([python.parent / "msprobe", "recover", dump], check=True, capture_output=True, timeout=60)
    rank = dump / "step0" / "rank"
    names = list(loaded(rank)[0]["data"])
    assert len(names) >= 1000 and names == [f"Functional.tanh.{i}.forward" for i in range(len(names))]
    assert json.loads((rank / "dump_summary.json").read_text())["state"] == "recovered"


def loaded(rank):
    return [json.loads((rank / name).read_text()) for name in FILES]


def test_ctrl_c_ends_the_process_as_without_the_tool(tmp_path, mindspore_python):
    bare = run(mindspore_python, "", "interrupted")
    done = run(mindspore_python, tmp_path / "dump", "interrupted")
    assert done.returncode == bare.returncode != 0, (bare.returncode, done.returncode, done.stderr[-2000:])
    # MindSpore ends the process in a handler of its own, without an exception in Python: what was flushed is there.
    recovered(mindspore_python, tmp_path / "dump")


def test_a_killed_run_is_finished_by_recover(tmp_path, mindspore_python):
    done = run(mindspore_python, tmp_path / "dump", "killed")
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    recovered(mindspore_python, tmp_path / "dump")


@pytest.fixture(scope="module")
def bits(tmp_path_factory, mindspore_python):
    done = run(mindspore_python, tmp_path_factory.mktemp("free") / "dump", "whole")
    assert done.returncode == 0 and "BITS" in done.stdout, done.stderr[-2000:]
    return done.stdout


def test_a_full_disk_ends_the_recording_and_not_the_training(small_disk, mindspore_python, bits):
    done = run(mindspore_python, small_disk / "dump", "whole")
    assert done.returncode == 0 and done.stdout == bits, done.stderr[-2000:]
    assert 1 <= done.stderr.count("No space left on device") <= 3 and "Traceback" not in done.stderr
    rank = small_disk / "dump" / "step0" / "rank"
    data, summary = loaded(rank)[0]["data"], json.loads((rank / "dump_summary.json").read_text())
    assert 0 < len(data) == summary["ops"] < 2000 and summary["ops"] + summary["ops_not_written"] == 2000


STATIC = """
import json, os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
from mindspore import Tensor
from msprobe.mindspore import PrecisionDebugger
held = vars(Tensor)["from_numpy"]
x, values = Tensor(np.ones(2, np.float32)), np.arange(3, dtype=np.float32)
debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=sys.argv[1])
debugger.start()
made = [x.from_numpy(values), Tensor.from_numpy(values)]
debugger.stop()
debugger.step()
made.append(x.from_numpy(values))
print(json.dumps([[m.asnumpy().tolist() for m in made], vars(Tensor)["from_numpy"] is held]))
"""


def test_a_static_method_takes_no_instance(tmp_path, mindspore_python):
    done = run_mindspore([mindspore_python, "-c", STATIC, tmp_path], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [[[0.0, 1.0, 2.0]] * 3, True]

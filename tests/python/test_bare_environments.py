"""What an environment may lack or forbid: PyTorch, MindSpore, NumPy, a home, a locale. Each command works, or says in a line what it needs."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from capture_helpers import capture
from launch import PACKAGE_ROOT

COMMAND = shutil.which("msprobe")
ODD = {"HOME": "/proc/none", "LC_ALL": "C", "XDG_CACHE_HOME": "/proc/none"}  # nobody writes below /proc
TRAIN = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
STEP = """
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python that has msprobe and nothing else."""
    place = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python3*/site-packages"))
    (site / "msprobe").symlink_to(PACKAGE_ROOT / "msprobe")
    return place / "bin" / "python"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    place = tmp_path_factory.mktemp("dump")
    taken = capture(
        place, TRAIN + "debugger.start(model)" + STEP + "debugger.stop()\ndebugger.step()\n", task="tensor", level="mix"
    )
    return taken.directory()


def environment(tmp_path, *without, **given):
    temporary = tmp_path / "a.b"
    temporary.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LANG", *without)}
    return {**kept, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary), **ODD, **given}


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, **options)


def test_the_package_alone(bare_python, tmp_path, dump):
    """Of MindSpore and PyTorch only what records needs them; comparing needs nothing."""
    code = f"""
import os
import msprobe
from msprobe.mindspore import compare
for module, name in (("pytorch", "PrecisionDebugger"), ("mindspore", "PrecisionDebugger"), ("mindspore", "TrainerMon")):
    try:
        exec(f"from msprobe.{{module}} import {{name}}")
    except ImportError as error:
        print(error.name, str(error).split(", which")[0])
msprobe.compare(target={str(dump)!r}, golden={str(dump)!r}, output_path={str(tmp_path / "out")!r})
print(*{{name.partition("_")[0] for name in os.listdir({str(tmp_path / "out")!r}) if "result" in name}})
"""
    done = run(bare_python, "-c", code, env=environment(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "torch msprobe.pytorch needs PyTorch",
        "mindspore msprobe.mindspore.PrecisionDebugger needs MindSpore",
        "mindspore msprobe.mindspore.TrainerMon needs MindSpore",
        "compare",
    ]


def test_each_command_helps(tmp_path):
    listed = run(COMMAND, "--help", env=environment(tmp_path)).stdout.partition("Record:\n")[2]
    names = re.findall(r"^  (\S+) ", listed, re.MULTILINE)
    assert len(names) > 25
    for name in names:
        done = run(COMMAND, name, "--help", env=environment(tmp_path, "HOME", "PATH"))
        assert done.returncode == 0 and "Usage: msprobe" in done.stdout and done.stderr == "", (name, done.stderr)


def test_commands_that_need_pytorch_say_so(bare_python, tmp_path, dump):
    file = dump / "dump.json"
    for arguments in (
        ["acc_check", "-api_info", file, "-o", "out"],
        ["lab", file, "--relations", "all"],
        ["run_overflow_check", "-api_info", file],
        ["multi_acc_check", "-api_info", file, "-o", "out"],
    ):
        done = run(COMMAND, *arguments, env=environment(tmp_path, MSPROBE_PYTHON=str(bare_python)), cwd=tmp_path)
        said = done.stdout + done.stderr
        assert done.returncode not in (0, 1) and "MSPROBE_PYTHON" in said and "Traceback" not in said, (arguments, said)


@pytest.mark.parametrize("without", [(), ("HOME",)])
def test_commands_with_a_home_that_is_not_there(tmp_path, dump, without):
    env = environment(tmp_path, *without)
    if without:
        env.pop("HOME")
    for arguments in (
        ["compare", "-tp", dump, "-gp", dump, "-o", "out", "--html"],
        ["graph_visualize", "-tp", dump, "-o", "out"],
        ["verify-dump", dump],
        ["overflow_check", "-i", dump],
        ["export", "out", "-o", "graph.html"],
    ):
        done = run(COMMAND, *arguments, env=env, cwd=tmp_path)
        assert "Traceback" not in done.stderr and "/proc/none" not in done.stderr, (arguments, done.stderr)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    assert not list((tmp_path / "a.b").iterdir())


@pytest.mark.parametrize("hidden", ["numpy", "nothing"])
def test_recording_without_numpy_and_without_a_home(tmp_path, hidden):
    """The same losses as in a plain environment, and the same entries."""
    script = tmp_path / "train.py"
    script.write_text(f"""
import sys
if {hidden!r} == "numpy":
    sys.modules["numpy"] = None
{TRAIN}
from msprobe.pytorch import PrecisionDebugger, TrainerMon
debugger = PrecisionDebugger(task="tensor", level="mix", dump_path="dump")
TrainerMon("monitor.json", params_have_main_grad=False).set_monitor(model, optimizer, grad_acc_steps=1)
for _ in range(2):
    debugger.start(model)
    {STEP.strip().replace(chr(10), chr(10) + "    ")}
    debugger.stop()
    debugger.step()
print([p.sum().item() for p in model.parameters()])
""")
    (tmp_path / "monitor.json").write_text(json.dumps({"targets": {}, "wg_distribution": True, "ops": ["norm"]}))
    env = {**environment(tmp_path), "PYTHONPATH": str(PACKAGE_ROOT), "MONITOR_OUTPUT_DIR": str(tmp_path / "rows")}
    done = run(sys.executable, script, env=env, cwd=tmp_path)
    assert done.returncode == 0 and "[ERROR]" not in done.stderr and "lost" not in done.stderr, done.stderr
    assert done.stdout.startswith("[") and len(list(tmp_path.rglob("*.csv"))) >= 1
    entries = json.loads((tmp_path / "dump/step1/rank/dump.json").read_text())["data"]
    assert "Module.0.Linear.backward.0" in entries and "Functional.linear.0.forward" in entries
    assert len(list((tmp_path / "dump/step1/rank/dump_tensor_data").iterdir())) > 10

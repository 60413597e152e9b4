"""Time of acc_check for a tensor dump of PyTorch with 1,000 calls, beside that of the bare calls in a process of their own, and of mindstudio-probe.

usage: python bench/torch_acc_check.py DIRECTORY [ROUNDS [PYTHON ...]]      with torch; MSPROBE_BIN is the command

The bare process starts Python, imports torch, loads the recorded tensors, and makes each call once, forward and backward. Both run in turn.
PYTHON has mindstudio-probe and torch: its check of the same dump runs once, with the CPU in the place of CUDA, without which it does not start.
That takes eight minutes.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
DUMP = """
import json, pathlib, sys
import torch
from torch.nn import functional

root = pathlib.Path(sys.argv[1])
files = root / "dump_tensor_data"
files.mkdir(parents=True)
torch.manual_seed(0)
data = {}

def leaf(tensor, name):
    torch.save(tensor.detach().clone(), files / f"{name}.pt")
    shown = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    return shown | {"requires_grad": True, "data_name": f"{name}.pt"}

x, w = torch.randn(64, 256), torch.randn(256, 256) / 16
y = x
for number in range(200):
    for name, function, inputs, settings in (
        ("Functional.linear", functional.linear, lambda: (y, w), {}),
        ("Functional.softmax", functional.softmax, lambda: (y,), {"dim": -1}),
        ("Torch.mul", torch.mul, lambda: (y, x), {}),
        ("Torch.add", torch.add, lambda: (y, x), {}),
        ("Torch.tanh", torch.tanh, lambda: (y,), {}),
    ):
        given, full = inputs(), f"{name}.{number}"
        y = function(*given, **settings)
        data[f"{full}.forward"] = {
            "input_args": [leaf(v, f"{full}.forward.input.{i}") for i, v in enumerate(given)],
            "input_kwargs": {key: {"type": "int", "value": value} for key, value in settings.items()},
            "output": [leaf(y, f"{full}.forward.output.0")],
        }
        data[f"{full}.backward"] = {"input": [leaf(torch.randn_like(y), f"{full}.backward.input.0")], "output": []}
head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(files)}
(root / "dump.json").write_text(json.dumps({**head, "data": data}))
"""
BARE = """
import json, pathlib, sys
import torch
from torch.nn import functional

root = pathlib.Path(sys.argv[1])
data = json.loads((root / "dump.json").read_text())["data"]

def load(leaf):
    return torch.load(root / "dump_tensor_data" / leaf["data_name"], weights_only=True)

for name, op in data.items():
    if name.endswith(".forward"):
        kind, function, number, _ = name.split(".")
        inputs = [load(leaf).requires_grad_() for leaf in op["input_args"]]
        settings = {key: leaf["value"] for key, leaf in op["input_kwargs"].items()}
        result = getattr(functional if kind == "Functional" else torch, function)(*inputs, **settings)
        gradient = load(data[f"{kind}.{function}.{number}.backward"]["input"][0])
        torch.autograd.grad(result, inputs, gradient)
"""


def seconds(command):
    """Processor time of a command and of its children, and the time that passes."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MSPROBE_PYTHON": sys.executable}
    subprocess.run([str(part) for part in command], check=True, env=env, stdout=-3, stderr=-3)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, end - begin


def main():
    root, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    subprocess.run([sys.executable, "-c", DUMP, root], check=True)
    command = os.environ.get("MSPROBE_BIN", REPO / ".venv" / "bin" / "msprobe")
    figures = []
    for number in range(rounds):
        start, _ = seconds([sys.executable, "-c", "import torch"])
        bare, bare_wall = seconds([sys.executable, "-c", BARE, root])
        ours, wall = seconds(
            [command, "acc_check", "-api_info", root / "dump.json", "-o", root / f"out{number}", "-d", "cpu"]
        )
        figures.append((start, bare, ours, ours / bare, bare_wall, wall, wall / bare_wall))
    start, bare, ours, times, bare_wall, wall, walls = (statistics.median(column) for column in zip(*figures))
    print(
        f"processor: import of torch {start:.1f} s, bare calls {bare:.1f} s with it, acc_check {ours:.1f} s: {times:.2f} times as much"
    )
    print(f"time: bare calls {bare_wall:.1f} s, acc_check {wall:.1f} s: {walls:.2f} times as much")
    for number, python in enumerate(sys.argv[3:]):
        out = root / f"earlier{number}"
        out.mkdir()
        script = REPO / "tests" / "python" / "old_acc_check.py"
        earlier, _ = seconds([python, script, "-", root / "dump.json", out])
        print(
            f"processor: mindstudio-probe of {python} {earlier:.0f} s, {earlier / ours:.0f} times as much as acc_check"
        )


if __name__ == "__main__":
    main()

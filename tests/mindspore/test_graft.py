"""Grafting across frameworks: a network of MindSpore runs with the inputs that its twin of PyTorch had."""

import json
import subprocess
import sys

import pytest
from graph_cases import find_command
from launch import run_mindspore, run_python

TORCH = """
import json, sys
import numpy as np
import torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
    def forward(self, x, scale):
        return torch.relu(self.fc(x)) * scale
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
    def forward(self, x, scale):
        for block in self.blocks:
            x = block(x, scale)
        return x
net = Net()
rng = np.random.default_rng(1)
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.from_numpy(rng.standard_normal(p.shape).astype(np.float32)))
debugger = PrecisionDebugger(config_path=sys.argv[1], dump_path=sys.argv[2])
debugger.start(model=net)
net(torch.from_numpy(rng.standard_normal((4, 8)).astype(np.float32)), torch.linspace(0.5, 1, 8)).sum().backward()
debugger.stop()
debugger.step()
"""
MINDSPORE = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops
from msprobe.mindspore import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
fault = sys.argv[3]
class Block(nn.Cell):
    def __init__(self, number):
        super().__init__()
        self.number, self.fc = number, nn.Dense(8, 8)
    def construct(self, x, scale):
        y = self.fc(x)
        if fault == "inside" and self.number == 1:
            y = y * 1.01
        return ops.relu(y) * scale  # tanh of MindSpore is another than that of PyTorch by 2e-6
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([Block(i) for i in range(3)])
    def construct(self, x, scale):
        for block in self.blocks:
            x = block(x, scale)
        return x
net = Net()
rng = np.random.default_rng(1)
for p in net.get_parameters():
    value = rng.standard_normal(p.shape).astype(np.float32)
    p.set_data(ms.Tensor(value * 1.1 if fault == "weight" and p.name == "blocks.0.fc.weight" else value))
debugger = PrecisionDebugger(config_path=sys.argv[1], dump_path=sys.argv[2])
x, scale = ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32)), ms.Tensor(np.linspace(0.5, 1, 8, dtype=np.float32))
debugger.start(net)
ms.value_and_grad(lambda x: net(x, scale).sum(), None, net.trainable_params())(x)
debugger.stop()
debugger.step()
"""


def call(command, root):
    command = list(map(str, command))
    if command[1] == "a.py":
        done = run_python(command[1:], cwd=root, check=False)
    elif command[1] == "b.py":
        done = run_mindspore(command, cwd=root)
    else:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1, 5), done.stderr[-1500:]
    return done.stdout


@pytest.mark.parametrize(("fault", "outcome"), [("inside", "module"), ("weight", "only_inputs")])
def test_the_cell_itself_or_only_its_inputs(tmp_path, mindspore_python, fault, outcome):
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "b.py").write_text(MINDSPORE)
    (tmp_path / "config.json").write_text(json.dumps({"task": "tensor", "level": "mix"}))
    call([sys.executable, "a.py", "config.json", "A/dump"], tmp_path)
    call([mindspore_python, "b.py", "config.json", "B/dump", fault], tmp_path)
    call([find_command(), "doctor", "A", "B", "-o", "out", "--graft", "blocks.1"], tmp_path)
    assert json.loads((tmp_path / "out" / "graft.json").read_text())["load"]["modules"] == [
        "Cell.blocks.1.Block.forward.0"
    ]
    call([mindspore_python, "b.py", "out/graft.json", "B/graft", fault], tmp_path)
    said = json.loads(call([find_command(), "doctor", "A", "B", "-o", "out", "--json"], tmp_path))
    assert said["graft"]["outcome"] == outcome, said["graft"]
    if outcome == "module":
        assert said["graft"]["module"] == "blocks.1"

"""Grafting: B runs with the inputs that A gave its modules, and the doctor says whether a module itself differs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from graph_cases import find_command

SCRIPT = """
import sys
import torch

fault = sys.argv[1]
torch.manual_seed(3), torch.set_num_threads(1)
dtype = torch.bfloat16 if "bf16" in fault else torch.float32


class Act(torch.nn.Module):
    def forward(self, x, *, scale):
        return torch.tanh(x * scale)


class Block(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number, self.fc, self.act = number, torch.nn.Linear(16, 16), Act()

    def forward(self, x, *, scale):
        y = self.fc(x)
        if "inside" in fault and self.number == 1:
            y = y + 0.01 * y.flip(-1)
        return self.act(y, scale=scale)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(i) for i in range(3)])

    def forward(self, x):
        scale = torch.linspace(0.9, 1.1, 16, dtype=x.dtype)
        for block in self.blocks:
            x = block(x, scale=scale)
            if "drift" in fault:
                x = x + x.abs().mean() * 1e-6
        return x


net = Net()
if "weight" in fault:
    with torch.no_grad():
        net.blocks[0].fc.weight.mul_(1.05)
net = net.to(dtype)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = torch.randn(3, 8, 16).to(dtype)
for step in range(3):
    optimizer.zero_grad()
    loss = net(data[step]).float().square().mean()
    loss.backward()
    optimizer.step()
    print(f"iteration {step + 1}/3 | learning rate: 1.0E-02 | lm loss: {loss.item():.6E} | grad norm: 1.0 |")
"""
RECORD = {"task": "tensor", "level": "mix"}


def shell(command, root):
    environment = {**os.environ, "PATH": f"{os.path.dirname(find_command())}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-800:]}\n{done.stderr[-1500:]}"
    return done.stderr


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """record(root, name, fault, script): a run and its dump. The same is run once for all tests and then copied."""
    kept = {}

    def recorded(root, name, fault, script=SCRIPT):
        (root / "record.json").write_text(json.dumps(RECORD))
        run, key = root / name, (name, fault, script)
        if key in kept:
            shutil.copytree(kept[key], run)
        else:
            run.mkdir()
            (run / "train.py").write_text(script)
        (run / "run.sh").write_text(f"{sys.executable} {run}/train.py '{fault}'\n")
        if key not in kept:
            shell(f"msprobe run --config record.json --dump-path {name}/dump --step 0 -- bash {name}/run.sh", root)
            kept[key] = shutil.copytree(run, tmp_path_factory.mktemp("recorded") / name)

    return recorded


def ask(root, *options):
    done = subprocess.run(
        [find_command(), "doctor", "A", "B", "-o", "doctor", "--json", *options],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(done.stdout)


def graft(root, module):
    """Asks for the run, runs it, and asks what it says."""
    said = ask(root, "--graft", module)
    (command,) = said["next"]["commands"]
    assert "--config doctor/graft.json" in command
    shell(command, root)
    said = ask(root)
    assert said["b"]["dumps"] == [{"path": "B/dump", "steps": [0]}]  # a graft is no recording of B as it is
    return said


def lines(said):
    return [line["en"] for stage in said["stages"] for line in stage["evidence"] if line["en"].startswith("graft: ")]


@pytest.mark.parametrize(
    ("fault", "module", "outcome"),
    [("inside", "blocks.1", "module"), ("weight", "blocks.1", "only_inputs"), ("weight", "blocks.0", "module")],
)
def test_a_module_itself_or_only_its_inputs(record, tmp_path, fault, module, outcome):
    record(tmp_path, "A", "")
    record(tmp_path, "B", fault)
    said = graft(tmp_path, module)
    assert said["graft"]["outcome"] == outcome, said["graft"]
    assert said["graft"]["step"] == 1 and said["graft"]["modules"] == [module]
    text = " ".join(lines(said))
    if outcome == "module":
        assert said["graft"]["module"] == module and f"{module} of B still gives something else" in text
    else:
        assert "only the inputs of these modules differ" in text
    # What B did by itself is found as before.
    assert said["outcome"] == "parted" and said["exact"]
    (loaded,) = (tmp_path / "B" / "msprobe_graft" / "step0").glob("*/msprobe_loaded.json")
    calls = json.loads(loaded.read_text())["calls"]
    assert calls == {f"Module.{module}.Block.forward.0": ["input.0", "kwargs.scale"]}


def test_bfloat16_comes_back_whole(record, tmp_path):
    record(tmp_path, "A", "bf16")
    record(tmp_path, "B", "bf16 weight")
    said = graft(tmp_path, "blocks.2")
    assert said["graft"]["outcome"] == "only_inputs", said["graft"]


def test_what_cannot_be_grafted_is_refused(record, tmp_path):
    record(tmp_path, "A", "")
    record(tmp_path, "B", "weight")
    for module in ("blocks.7", "nothing"):
        done = subprocess.run(
            [find_command(), "doctor", "A", "B", "--graft", module], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 3 and "neither run recorded a module" in done.stderr, done.stderr
    ask(tmp_path, "--graft", "blocks.1")
    for file in Path(tmp_path, "doctor", "graft_inputs").rglob("*.npy"):
        file.write_bytes(b"no array")
    stderr = shell(
        "msprobe run --config doctor/graft.json --dump-path B/msprobe_graft --step 0 -- bash B/run.sh", tmp_path
    )
    assert "the input stays as it is" in stderr
    assert ask(tmp_path)["graft"]["outcome"] == "unknown"


DRIFT = """
import sys
import numpy
import torch

fault = sys.argv[1]
torch.manual_seed(3), torch.set_num_threads(1)


class Curve(torch.autograd.Function):
    # sin() by hand: no recorded op tells what it computes

    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x)
        return torch.from_numpy(numpy.sin(x.detach().numpy()) * numpy.float32(gain))

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.cos(x), None


class Block(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number, self.fc = number, torch.nn.Linear(16, 16)

    def forward(self, x):
        return Curve.apply(3 * self.fc(x), 1.0002 if "module" in fault and self.number == 6 else 1.0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(i) for i in range(9)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net()
with torch.no_grad():
    for block in net.blocks:
        block.fc.weight.mul_(2.2)
    if fault:  # as little as other kernels would give; each block makes more of it
        net.blocks[0].fc.weight.add_(5e-7 * torch.randn(16, 16))
loss = net(torch.randn(8, 16, generator=torch.Generator().manual_seed(5))).square().mean()
loss.backward()
torch.optim.SGD(net.parameters(), lr=0.01).step()
print(f"iteration 1/1 | learning rate: 1.0E-02 | lm loss: {loss.item():.6E} | grad norm: 1.0 |")
"""


@pytest.mark.parametrize(("fault", "outcome"), [("drift", "only_inputs"), ("drift module", "module")])
def test_where_small_differences_add_up_the_doctor_asks_for_a_graft(record, tmp_path, fault, outcome):
    """Also where the step is the last of the training."""
    record(tmp_path, "A", "", DRIFT)
    record(tmp_path, "B", fault, DRIFT)
    for name in "AB":
        shell(f"bash {name}/run.sh > {name}/train.log", tmp_path)
    said = ask(tmp_path)
    assert (said["outcome"], said["stage"], said["exact"]) == ("undecided", "step1_loss", False)
    (command,) = said["next"]["commands"]
    assert command == ("msprobe run --config doctor/graft.json --dump-path B/msprobe_graft --step 0 -- bash B/run.sh")
    shell(command, tmp_path)
    said = ask(tmp_path)
    assert said["b"]["dumps"] == [{"path": "B/dump", "steps": [0]}]
    assert said["graft"]["outcome"] == outcome and len(said["graft"]["modules"]) == 9, said["graft"]
    if outcome == "module":
        assert (said["outcome"], said["exact"], said["graft"]["module"]) == ("parted", True, "blocks.6")
        assert "blocks.6" in said["cause"] and said["next"] is None
    else:
        assert said["outcome"] == "undecided" and not said["bug"]
        assert said["next"] is None or "graft" not in said["next"]["commands"][0]

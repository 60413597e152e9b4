"""The runs that the doctor asks for beyond a recording: a learning rate of 0, batches, steps of optimizers."""

import json
import os
import subprocess
import sys

import pytest
from graph_cases import find_command

SCRIPT = """
import sys
import torch

drift = float(sys.argv[1])
torch.manual_seed(3), torch.set_num_threads(1)


class Act(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = torch.nn.Linear(16, 16), Act()

    def forward(self, x):
        y = self.fc(x)
        return self.act(y + y.abs().mean() * drift)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=float(sys.argv[sys.argv.index("--lr") + 1]))
data = torch.randn(40, 8, 16)
for step in range(40):
    optimizer.zero_grad()
    loss = net(data[step]).square().mean()
    loss.backward()
    optimizer.step()
    print(f"iteration {step + 1}/40 | learning rate: {optimizer.param_groups[0]['lr']:.6E} | lm loss: {loss.item():.6E} | grad norm: 1.0 |")
"""


def side(root, name, drift):
    run = root / name
    run.mkdir()
    (run / "train.py").write_text(SCRIPT)
    (run / "run.sh").write_text(
        f'HERE=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)\n{sys.executable} $HERE/train.py {drift} --lr 0.01\n'
    )
    shell(f"bash {name}/run.sh > {name}/train.log", root)


def shell(command, root):
    environment = {**os.environ, "PATH": f"{os.path.dirname(find_command())}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-800:]}\n{done.stderr[-1500:]}"


def ask(root):
    done = subprocess.run(
        [find_command(), "doctor", "A", "B", "-o", "doctor", "--json"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(done.stdout)


def stage(said, name):
    return next(s for s in said["stages"] if s["stage"] == name)


@pytest.mark.deep
def test_a_run_with_a_learning_rate_of_0_is_one_of_its_own(tmp_path):
    """Its log is a curve of its own, and its settings are not those of the training."""
    for name, drift in (("A", 0), ("B", 1.0)):
        side(tmp_path, name, drift)
    offer = stage(ask(tmp_path), "lr0")["offer"]
    assert len(offer["commands"]) == 2 and "run.sh" in offer["commands"][0]
    for command in offer["commands"]:
        shell(command, tmp_path)
    assert (tmp_path / "A" / "lr0.log").read_text().count("learning rate: 0.000000E+00") == 40
    said = ask(tmp_path)
    assert stage(said, "lr0")["verdict"] == "differs" and stage(said, "lr0")["step"] == 1
    assert len(said["a"]["logs"]) == 2 and said["a"]["configurations"] == ["A/run.sh"]


def test_two_logs_in_one_directory_are_recorded_apart(tmp_path):
    for name, more in (("a", 0.0), ("b", 0.2)):
        (tmp_path / f"{name}.log").write_text("".join(f"step {i} loss: {3 - 0.1 * i + more}\n" for i in range(1, 7)))
    done = subprocess.run(
        [find_command(), "doctor", "a.log", "b.log"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    paths = [line.split("--dump-path ")[1].split()[0] for line in done.stdout.splitlines() if "--dump-path" in line]
    assert len(paths) == 2 and len(set(paths)) == 2, done.stdout


def test_dumps_of_a_structure_are_said_to_hold_no_values(tmp_path):
    for name, more in (("A", 0.0), ("B", 0.2)):
        dump = tmp_path / name / "dump" / "step0" / "rank"
        dump.mkdir(parents=True)
        (tmp_path / name / "train.log").write_text(
            "".join(f"step {i} loss: {3 - 0.1 * i + more}\n" for i in range(1, 7))
        )
        header = {"task": "structure", "level": "L0", "framework": "pytorch", "dump_data_dir": None}
        (dump / "dump.json").write_text(json.dumps({**header, "data": {"Module.fc.Linear.forward.0": {}}}))
        (dump / "construct.json").write_text(json.dumps({"Module.fc.Linear.forward.0": None}))
    done = subprocess.run(
        [find_command(), "doctor", "A", "B"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1 and "record statistics" in done.stdout, done.stdout + done.stderr


@pytest.mark.deep
def test_saved_batches_and_optimizers_are_read_as_such(tmp_path):
    for name in "AB":
        side(tmp_path, name, 0)
        shell(
            f"msprobe run --save-batches {name}/msprobe_batches --batches-from model --save-optimizer "
            f"{name}/msprobe_optimizer -- bash {name}/run.sh",
            tmp_path,
        )
    said = ask(tmp_path)
    assert said["a"]["batches"] == 40 and said["a"]["optimizer_records"] == ["A/msprobe_optimizer"]
    assert stage(said, "data")["verdict"] == "pass" and stage(said, "optimizer")["verdict"] == "pass"
    assert stage(said, "data")["offer"] is None and stage(said, "optimizer")["offer"] is None
    record = tmp_path / "B" / "msprobe_optimizer" / "rank0" / "optimizer0" / "step0" / "optimizer.json"
    record.write_text(record.read_text().replace('"weight_decay": 0', '"weight_decay": 0.5'))
    said = ask(tmp_path)
    assert stage(said, "optimizer")["cause"] == "term weight_decay" and said["stage"] == "optimizer"

"""TrainerMonitorV2 of MindSpore: rows, values, and that the training stays what it is."""

import csv
import json

import pytest
from launch import run_mindspore

SCRIPT = """
import hashlib, json, os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ops = sys.argv[2:]

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.head = nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2)

    def construct(self, x):
        return self.head(self.act(self.first(x)))

ms.set_seed(3)
net = Net()
net.set_train()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
monitor = None
if sys.argv[1] == "on":
    from msprobe.core.monitor_v2 import TrainerMonitorV2
    kinds = {kind: {"enabled": True, "ops": ops} for kind in ("module", "weight_grad", "optimizer", "param")}
    config = {"output_dir": os.getcwd(), "step_count_per_record": 2, "patch_optimizer_step": False, "monitors": kinds}
    json.dump(config, open("v2.json", "w"))
    monitor = TrainerMonitorV2(os.path.abspath("v2.json"), fr="mindspore")
    monitor.start(model=net, optimizer=optimizer, grad_acc_steps=2)
value_and_grad = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
random = np.random.default_rng(0)
losses, norms = [], {}
for step in range(3):
    gradients = 0
    for micro in range(2):
        x, y = (Tensor(random.standard_normal((3, n)).astype(np.float32)) for n in (4, 2))
        loss, parts = value_and_grad(x, y)
        losses.append(float(loss.asnumpy()).hex())
        gradients = parts if not gradients else tuple(a + b for a, b in zip(gradients, parts))
    optimizer(gradients)
    if monitor is not None:
        monitor.step()
    for i, p in enumerate(optimizer.parameters):
        tensors = {"reduced": gradients[i], "unreduced": parts[i], "param_updated": p}
        tensors |= {"exp_avg": optimizer.moment1[i], "exp_avg_sq": optimizer.moment2[i]}
        for scope, tensor in tensors.items():
            name = f"{p.name}.{scope}" if scope.startswith("exp") else p.name
            norms[f"{step} {name} {scope}"] = float(np.linalg.norm(tensor.asnumpy().astype(np.float64)))
if monitor is not None:
    monitor.stop()
state = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest()
json.dump([losses, state], open("result.json", "w"))
json.dump(norms, open("truth.json", "w"))
"""


def train(python, directory, *arguments):
    """Runs the script; returns its files as lists of rows."""
    directory.mkdir()
    (directory / "train.py").write_text(SCRIPT)
    done = run_mindspore([python, "train.py", *arguments], cwd=directory)
    assert done.returncode == 0, done.stderr
    tables = {}
    for path in sorted((directory / "rank_0").glob("*.csv") if (directory / "rank_0").exists() else ()):
        with open(path, newline="") as file:
            tables[path.name] = list(csv.DictReader(file))
    return tables


def test_values_and_training(mindspore_python, tmp_path):
    tables = train(mindspore_python, tmp_path / "on", "on", "norm", "max")
    train(mindspore_python, tmp_path / "off", "off")
    assert (tmp_path / "on/result.json").read_text() == (tmp_path / "off/result.json").read_text()
    kinds = ("module", "weight_grad", "optimizer", "param")
    assert sorted(tables) == sorted(f"{kind}_step{part}.csv" for kind in kinds for part in ("0-1", "2-3"))
    truth = json.loads((tmp_path / "on/truth.json").read_text())
    found = {
        f"{row['step']} {row['module_name']} {row['scope']}": float(row["norm"])
        for rows in tables.values()
        for row in rows
    }
    assert set(truth) <= set(found)
    for name, value in truth.items():
        assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-12), name
    rows = tables["module_step0-1.csv"]
    names = {row["module_name"] for row in rows}
    assert {".input.0", "first.output.0", "act.grad_input.0", "head.grad_output.0"} <= names
    assert {row["micro_step"] for row in tables["weight_grad_step0-1.csv"]} == {"2"}


@pytest.mark.deep
def test_rows_are_those_of_the_old_tool(mindspore_python, old_mindspore_python, tmp_path):
    # Without the norm, whose kernel it calls is not there on a CPU; it sees only what needs no step() of the optimizer.
    ops = ("min", "max", "mean", "nans")
    ours, theirs = (
        train(mindspore_python, tmp_path / "new", "on", *ops),
        train(old_mindspore_python, tmp_path / "old", "on", *ops),
    )
    assert sorted(theirs) == sorted(name for name in ours if name.startswith(("module", "weight_grad")))
    for name, rows in theirs.items():
        mine = [row for row in ours[name] if row["scope"] != "reduced"]
        assert [list(row)[:5] for row in rows] == [list(row)[:5] for row in mine]
        for a, b in zip(rows, mine, strict=True):
            for key, value in a.items():
                if key in ops:
                    assert float(value) == pytest.approx(float(b[key]), rel=1e-5, abs=1e-7), (name, a, b)
                else:
                    assert value == b[key], (name, a, b)


def test_what_is_wrong_is_said(mindspore_python, tmp_path):
    script = """
import json, os
from mindspore import nn
from msprobe.core.monitor_v2 import TrainerMonitorV2
json.dump({"output_dir": os.getcwd(), "monitors": {"param": {"enabled": True}, "cc": {"enabled": True}}}, open("v2.json", "w"))
net = nn.Dense(2, 2)
for model, optimizer, kind in ((net, None, ValueError), (1, nn.SGD(net.trainable_params(), 0.1), TypeError), (net, net.weight, TypeError)):
    try:
        TrainerMonitorV2("v2.json", fr="mindspore").start(model=model, optimizer=optimizer)
    except kind as error:
        print(error)
    else:
        raise AssertionError(model)
TrainerMonitorV2("v2.json", fr="mindspore").start(model=net, optimizer=nn.SGD(net.trainable_params(), 0.1))
"""
    (tmp_path / "train.py").write_text(script)
    done = run_mindspore([mindspore_python, "train.py"], cwd=tmp_path, env={"LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "cc is left out" in done.stderr

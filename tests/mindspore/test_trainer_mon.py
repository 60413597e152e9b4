"""TrainerMon of MindSpore: files, values, and that the training stays what it is."""

import csv
import glob
import json
import os

import pytest
from launch import run_mindspore

SCRIPT = """
import hashlib, json, os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn

ms.set_context(mode=ms.PYNATIVE_MODE)
CASE, MONITORED = sys.argv[1], sys.argv[2] == "on"
OPTIMIZERS = {
    "Adam": lambda p: nn.Adam(p, 1e-2), "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 1e-2),
    "Momentum": lambda p: nn.Momentum(p, 1e-2, 0.9), "SGD": lambda p: nn.SGD(p, 1e-2), "cell": lambda p: nn.Adam(p, 1e-2),
}

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.head = nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2)

    def construct(self, x):
        return self.head(self.act(self.first(x)))

ms.set_seed(3)
net = Net()
net.set_train()
optimizer = OPTIMIZERS[CASE](net.trainable_params())
if MONITORED:
    from msprobe.mindspore import TrainerMon
    config = {key + "_distribution": True for key in ("xy", "wg", "mv", "param", "ur")} | {"mg_direction": True}
    json.dump({"targets": {}, "ops": ["norm", "max", "nans"], "ndigits": 20, **config}, open("config.json", "w"))
    TrainerMon("config.json").set_monitor(net, optimizer)
value_and_grad = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
whole = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
random = np.random.default_rng(0)
losses, truth = [], {}
for step in range(3):
    x, y = (Tensor(random.standard_normal((3, n)).astype(np.float32)) for n in (4, 2))
    before = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
    moments = [m.asnumpy().copy() for m in optimizer.moment1] if CASE == "Adam" else []
    if CASE == "cell":
        loss, gradients = whole(x, y), []
    else:
        loss, gradients = value_and_grad(x, y)
        optimizer(gradients)
    losses.append(float(loss.asnumpy()).hex())
    after = [p.asnumpy().astype(np.float64) for p in optimizer.parameters]
    for i, p in enumerate(optimizer.parameters):
        norms = {"param_origin": before[i], "param_updated": after[i], "param_update": after[i] - before[i]}
        if gradients:
            norms["grad_reduced"] = gradients[i].asnumpy().astype(np.float64)
        if moments:
            norms["other"] = (np.mean(np.sign(gradients[i].asnumpy()) * np.sign(moments[i])) + 1) / 2
        truth.update({f"{table} {p.name} {step}": float(np.linalg.norm(a)) for table, a in norms.items()})
state = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest()
json.dump({"losses": losses, "state": state}, open("result.json", "w"))
json.dump(truth, open("truth.json", "w"))
"""


@pytest.mark.parametrize("case", ["Adam", "AdamWeightDecay", "Momentum", "SGD", "cell"])
def test_values_and_training(mindspore_python, tmp_path, case):
    results = []
    for monitored in ("on", "off") if case in ("Adam", "cell") else ("on",):
        directory = tmp_path / monitored
        directory.mkdir()
        (directory / "train.py").write_text(SCRIPT)
        done = run_mindspore(
            [mindspore_python, "train.py", case, monitored],
            cwd=directory,
            env={"MONITOR_OUTPUT_DIR": str(directory / "monitor")},
        )
        assert done.returncode == 0, done.stderr
        assert " it ends here" not in done.stderr and "have no value" not in done.stderr
        results.append((directory / "result.json").read_text())
    assert len(set(results)) == 1
    tables = {}
    for path in glob.glob(str(tmp_path / "on/monitor/*-rank0-*/*.csv")):
        with open(path, newline="") as file:
            tables.setdefault(os.path.basename(path).rsplit("_", 1)[0], []).extend(csv.DictReader(file))
    moments = {"Momentum": {"exp_avg"}, "SGD": set()}.get(case, {"exp_avg", "exp_avg_sq"})
    parameters = {"grad_reduced", "param_origin", "param_updated", "param_update"}
    parameters |= {"other"} if moments else set()  # of mg_direction, which needs a first moment
    assert set(tables) == {"actv", "actv_grad", *parameters, *moments}
    assert tables["actv"][0]["shape"] == "[3, 4]" and tables["actv"][0]["dtype"] == "Float32"
    names = {row["name"] for row in tables["actv"]}
    assert {"first.input", "first.output", "act.output", "head.output"} <= names
    truth = json.loads((tmp_path / "on/truth.json").read_text())
    found = {f"{t} {row['name']} {row['step']}": float(row["norm"]) for t in parameters for row in tables[t]}
    assert set(truth) <= set(found)
    for name, value in truth.items():
        assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-12), name


def test_what_is_wrong_is_said(mindspore_python, tmp_path):
    script = """
import json, os
import mindspore as ms
from mindspore import nn
from msprobe.mindspore import TrainerMon
json.dump({"targets": {"nowhere": {}}, "xy_distribution": True, "print_struct": True}, open("config.json", "w"))
net, other = nn.Dense(2, 2), nn.Dense(2, 2)
monitor = TrainerMon("config.json")
for arguments, kind in (((1, nn.SGD(net.trainable_params(), 0.1)), TypeError), ((net, net.weight), TypeError),
                        ((other, nn.SGD(net.trainable_params(), 0.1)), ValueError)):
    try:
        monitor.set_monitor(*arguments)
    except kind as error:
        print(error)
    else:
        raise AssertionError(arguments)
"""
    (tmp_path / "train.py").write_text(script)
    done = run_mindspore([mindspore_python, "train.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "print_struct: not for MindSpore" in done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_a_budget_is_kept_and_a_change_is_told(mindspore_python, tmp_path):
    script = """
import json, os
import numpy as np
import mindspore as ms
from mindspore import nn
from msprobe.mindspore import TrainerMon

ms.set_context(mode=ms.PYNATIVE_MODE)
KEYS = {"targets": {}, "param_distribution": True, "wg_distribution": True, "step_count_per_record": 1000}

def train(name, steps, **keys):
    os.environ["MONITOR_OUTPUT_DIR"] = name
    json.dump({**KEYS, **keys}, open("config.json", "w"))
    net = nn.Dense(4, 2)
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 1e-3)
    monitor = TrainerMon("config.json")
    events = []
    monitor.on_change(events.append)
    monitor.set_monitor(net, optimizer)
    draw = np.random.default_rng(1)
    step = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    for number in range(steps):
        if number == 220:
            weight = net.weight.asnumpy()
            weight[0, 0] += 1e-3
            net.weight.set_data(ms.Tensor(weight))
        optimizer(step(ms.Tensor(draw.standard_normal((64, 4)).astype(np.float32)))[1])
    monitor.close()
    return monitor, events

monitor, _ = train("small", 40, budget={"disk": "20KB"})
written = sum(os.path.getsize(os.path.join(monitor.directory, f)) for f in os.listdir(monitor.directory) if f != "heartbeat.json")
print("written", written)
_, events = train("alarms", 225, alert={"rules": [{"rule_name": "ChangePoint"}]})
print(events[0]["detector"], events[0]["told"])
"""
    (tmp_path / "train.py").write_text(script)
    done = run_mindspore([mindspore_python, "train.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert 0 < int(found["written"]) <= 20000 and "its disk budget of 20000 bytes" in done.stderr
    assert found["changed_outside"] == "220"

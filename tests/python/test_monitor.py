"""TrainerMon: files, numbers, and that the training stays what it is. mindstudio-probe beside it: test_monitor_old.py."""

import glob
import json
import os
import subprocess
import sys

import monitor_files
import pytest
from conftest import REPO
from msprobe import _core

HEAD = f"""
import sys, os, json
sys.path.insert(0, {str(REPO / "tests" / "python")!r})
import torch
import monitor_scenario as scenario
torch.set_num_threads(1)

def config(name="config.json", **keys):
    with open(name, "w") as file:
        json.dump({{"targets": {{}}, **keys}}, file)
    return name

def model_and_optimizer():
    torch.manual_seed(7)
    model = scenario.Model()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

def step(model, optimizer):
    tokens = torch.randint(0, 20, (2, 6))
    torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
EVERYTHING = {
    **{
        "input_distribution": True,
        "mg_direction": True,
        "ur_distribution": True,
        "recording_l2_features": True,
        "stack_info": True,
    },
    "l2_targets": {"linear_hook": [], "moe_router_logit_hook": ["0:head"], "moe_router_weight_hook": ["0:head"]},
    "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}], "dump": True},
}


@pytest.mark.parametrize("case", ["plain", "micro", "main_grad", "everything"])
def test_numbers_of_the_training_stay_the_same(run_script, tmp_path, case):
    script = f"""
scenario.CASES["everything"] = ({EVERYTHING!r}, 2, 1)
for name, monitored in (("with", True), ("without", False)):
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(name, "monitor")
    os.makedirs(name)
    scenario.train({case!r}, name, monitored)
"""
    done = run_script(HEAD + script)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "with/result0.json").read_text() == (tmp_path / "without/result0.json").read_text()
    assert " it ends here" not in done.stderr
    directory = monitor_files.directories(str(tmp_path / "with"))[0]
    files = monitor_files.tables(directory)
    assert {"actv_0-0.csv", "grad_unreduced_0-0.csv", "param_updated_3-3.csv", "exp_avg_1-1.csv"} <= set(files)
    assert_series_are_the_csv(directory, files)
    if case == "everything":
        assert {
            "model_input_0-0.csv",
            "param_update_0-0.csv",
            "other_0-0.csv",
            "linear_hook_0-0.csv",
            "stack_info.csv",
        } <= set(files)
        assert (tmp_path / "with/monitor/anomaly_detected/rank0/anomaly.json").exists()


def assert_series_are_the_csv(directory, files):
    """monitor.series holds exactly the numbers that the csv files hold rounded, here to 20 decimals."""
    found = _core.read_series(os.path.join(directory, "monitor.series"))
    assert not found["cut_off"]
    compared = 0
    for one in found["series"]:
        for column, points in one["columns"].items():
            for step, value in points:
                header, *rows = files[f"{one['table']}_{step}-{step}.csv"]
                key = [str(one["vpp_stage"]), one["name"], str(step), str(one["micro_step"])][
                    : 4 if "micro_step" in header else 3
                ]
                row = next(row for row in rows if row[: len(key)] == key)
                text = row[header.index(column)]
                compared += 1
                assert text == "nan" and value != value or float(text) == pytest.approx(value, rel=1e-9, abs=1e-19)
    assert compared > 100


def test_updates_are_those_of_float64(run_script, tmp_path):
    script = """
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
monitor = TrainerMon(config(ur_distribution=True, ops=["norm", "max"], ndigits=20, step_count_per_record=9))
monitor.set_monitor(model, optimizer)
truth = []
for number in range(3):
    before = {name: p.detach().double() for name, p in model.named_parameters()}
    step(model, optimizer)
    for name, p in model.named_parameters():
        change = p.detach().double() - before[name]
        truth.append((name, number, change.norm().item(), change.max().item(), (change.norm() / before[name].norm()).item()))
json.dump(truth, open("truth.json", "w"))
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    header, *rows = monitor_files.tables(monitor_files.directories(str(tmp_path))[0])["param_update_0-8.csv"]
    assert header == ["vpp_stage", "name", "step", "norm", "max", "shape", "dtype", "ratio"]
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert len(rows) == len(truth)
    for row, (name, number, norm, most, ratio) in zip(rows, truth):
        assert row[1:3] == [name, str(number)]
        assert float(row[3]) == pytest.approx(norm, rel=1e-5)
        assert float(row[4]) == pytest.approx(most, rel=1e-4, abs=1e-9)
        assert row[7] == "nan" if ratio == float("inf") else float(row[7]) == pytest.approx(ratio, rel=1e-5)


def test_inputs_tell_repeated_data(run_script, tmp_path):
    script = """
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
monitor = TrainerMon(config(input_distribution=True, step_count_per_record=9))
monitor.set_monitor(model, optimizer)
batches = [torch.randint(0, 20, (2, 6)) for _ in range(2)]
shifted = batches[0].roll(1, 1)
losses = []
for tokens in (batches[0], batches[1], batches[0], shifted):
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    monitor.record_loss(loss)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    files = monitor_files.tables(monitor_files.directories(str(tmp_path))[0])
    header, *rows = files["input_checksum_0-8.csv"]
    assert header == ["vpp_stage", "name", "step", "micro_step", "checksum"]
    first, second, again, shifted = (row[-1] for row in rows)
    assert first == again and len({first, second, shifted}) == 3
    assert files["model_input_0-8.csv"][0][4:] == ["norm", "min", "max", "mean", "shape", "dtype"]
    losses = [float(row[-1]) for row in files["loss_0-8.csv"][1:]]
    assert losses == pytest.approx(json.loads((tmp_path / "losses.json").read_text()), abs=1e-6)


def test_a_budget_is_kept(run_script, tmp_path):
    script = """
from msprobe._monitor import budget
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
everything = {key + "_distribution": True for key in ("xy", "wg", "mv", "param")}
monitor = TrainerMon(config(budget={"disk": "200KB"}, step_count_per_record=1000, **everything))
monitor.set_monitor(model, optimizer)
for _ in range(300):
    step(model, optimizer)
monitor.close()
directory = monitor.tensorboard_dir
size = sum(entry.stat().st_size for entry in os.scandir(directory) if entry.name != "heartbeat.json")
assert 100_000 < size <= 200_000, size

clock = [0.0]
budget.time.perf_counter = lambda: clock[0]  # a step takes 100 ms, a monitored one 10 % more
monitor = TrainerMon(config(budget={"slowdown": 1.02}, **everything))
monitor.set_monitor(model, optimizer)
for _ in range(60):
    clock[0] += 0.11 if monitor._armed else 0.1
    step(model, optimizer)
assert not any(m._forward_hooks for m in model.modules())
for wrong in ({"disk": "much"}, {"slowdown": 0}, 3):
    try:
        TrainerMon(config(budget=wrong))
    except ValueError as error:
        assert "allowed" in str(error)
    else:
        raise AssertionError(wrong)
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    assert (
        "only one in 10 of the monitored steps" in done.stderr and "is used up: nothing more is written" in done.stderr
    )
    assert "takes 1.100 times as long, the budget allows 1.020: modules are left out" in done.stderr


def test_what_stays_silent_is_told(run_script, tmp_path):
    script = """
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
monitor = TrainerMon(config(targets={"head": {}, "nowhere": {}, "layers.0.fc1": {}}, xy_distribution=True, wg_distribution=True))
monitor.set_monitor(model, optimizer, grad_acc_steps=2)
model.layers[0].fc1.requires_grad_(False)
for _ in range(2):
    step(model, optimizer)
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    assert "actv of 0:nowhere (the model has no module of this name)" in done.stderr
    assert "1 backward passes and not grad_acc_steps = 2" in done.stderr
    assert "grad_reduced of 0:layers.0.fc1.weight" in done.stderr
    status = subprocess.run(
        [
            os.path.join(os.path.dirname(sys.executable), "msprobe"),
            "monitor",
            "status",
            str(tmp_path / "monitor"),
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    assert status.returncode == 1
    (rank,) = json.loads(status.stdout)["ranks"]
    assert rank["state"] == "ended" and rank["step"] == 1
    assert any("0:nowhere" in text for text in rank["silent"])


def test_a_monitor_that_fails_lets_the_training_go_on(run_script, tmp_path):
    script = """
import shutil
import time
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
monitor = TrainerMon(config(wg_distribution=True, xy_distribution=True))
monitor.set_monitor(model, optimizer)
step(model, optimizer)
while not os.path.exists(os.path.join(monitor.tensorboard_dir, "heartbeat.json")):
    time.sleep(0.01)  # its thread makes the directory
shutil.rmtree(os.environ["MONITOR_OUTPUT_DIR"])
step(model, optimizer)
monitor._reader.after = None  # stands for a fault of ours
step(model, optimizer)
step(model, optimizer)
assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
print("the training has ended")
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    assert "the training has ended" in done.stdout
    assert "step 1 is not complete" in done.stderr
    assert "it ends here, the training goes on" in done.stderr


def test_configuration_and_formats(run_script, tmp_path):
    script = """
from msprobe.pytorch import TrainerMon
for wrong, kind in (({"ops": "norm"}, TypeError), ({"ndigits": 21}, ValueError), ({"targets": []}, TypeError), ({"eps": 1}, TypeError),
                    ({"alert": {"rules": [{"rule_name": "X"}]}}, TypeError), ({"cc_distribution": {"x": 1}}, TypeError)):
    try:
        TrainerMon(config(**wrong))
    except kind as error:
        assert "config.json" in str(error), error
    else:
        raise AssertionError(wrong)
assert not os.path.exists(os.environ["MONITOR_OUTPUT_DIR"])

model, optimizer = model_and_optimizer()
scheduler_after = TrainerMon(config(wg_distribution=True, format="api", ops=["norm"], collect_times=2))
scheduler_after.set_monitor(model, optimizer)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
tokens = torch.randint(0, 20, (2, 6))
for _ in range(3):
    model(tokens).sum().backward()
    after, before = scheduler_after.generate_wgrad_metrics()
    if _ < 2:
        norm = model.head.weight.grad.double().norm().item()
        assert abs(after["0:head.weight/rank0/post_grad"]["norm"] - norm) < 1e-6 * norm
        assert set(before) == {name.replace("post_grad", "acc_grad") for name in after}
    optimizer.step(); scheduler.step(); optimizer.zero_grad()
assert not scheduler_after.monitoring
scheduler_after.close()

model, optimizer = model_and_optimizer()
events = TrainerMon(config(wg_distribution=True, format="tensorboard"))
events.set_monitor(model, optimizer)
step(model, optimizer)
events.close()

structure = TrainerMon(config(print_struct=True))
structure.set_monitor(model, optimizer)
try:
    step(model, optimizer)
except RuntimeError as error:
    assert "exit after first monitor step when print model struct" in str(error)
else:
    raise AssertionError
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    assert len(glob.glob(str(tmp_path / "monitor/*/events.out.tfevents.*"))) == 1
    assert not glob.glob(str(tmp_path / "monitor/*/*.csv"))
    structure = json.loads((tmp_path / "monitor/module_struct/rank0/module_struct.json").read_text())
    assert structure["0:block.fc1"]["input"] == {"config": "list[1]", "0": "size=(2, 6, 16), dtype=torch.float32"}


def test_dynamic_configuration_and_anomalies(run_script, tmp_path):
    script = """
from msprobe.pytorch import TrainerMon
from msprobe.core.monitor import anomaly_processor
path = config(dynamic_on=False)
model, optimizer = model_and_optimizer()
monitor = TrainerMon(path)
monitor.set_monitor(model, optimizer)
step(model, optimizer)
rules = [{"rule_name": "AnomalyNan"}, {"rule_name": "AnomalyTurbulence", "args": {"threshold": 3}}]
config(dynamic_on=True, collect_times=3, wg_distribution=True, alert={"rules": rules, "dump": True})
os.utime(path, (1, 1))
for number in range(6):
    if number == 3:
        model.head.weight.data.mul_(1e4)
    step(model, optimizer)
assert json.load(open(path))["dynamic_on"] is False
code = anomaly_processor.main(["-d", os.path.join(os.environ["MONITOR_OUTPUT_DIR"], "anomaly_detected"), "-k", "3"])
assert code == 0
assert anomaly_processor.main(["-d", "nowhere"]) == 3
"""
    done = run_script(HEAD + script, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor"), "DYNAMIC_MONITOR": "True"})
    assert done.returncode == 0, done.stderr
    files = monitor_files.tables(monitor_files.directories(str(tmp_path))[0])
    assert sorted(files) == sorted(f"grad_{kind}_{n}-{n}.csv" for kind in ("reduced", "unreduced") for n in (2, 3, 4))
    first = json.loads((tmp_path / "monitor/anomaly_detected/anomaly_analyse.json").read_text())
    assert len(first) == 3
    entry = next(iter(first.values()))
    assert entry["step"] == 4 and "AnomalyTurbulence" in entry["message"]
    assert {"rank", "micro_step", "pp_stage", "vpp_stage", "call_id", "tag_name", "group_mates"} < set(entry)


def test_without_a_line_in_the_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        HEAD + "model, optimizer = model_and_optimizer()\nfor _ in range(2):\n    step(model, optimizer)\n"
    )
    msprobe = os.path.join(os.path.dirname(sys.executable), "msprobe")
    command = [msprobe, "monitor", "--output", str(tmp_path / "monitor"), "--csv", "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = monitor_files.tables(monitor_files.directories(str(tmp_path))[0])
    assert {"grad_unreduced_0-0.csv", "grad_reduced_1-1.csv", "exp_avg_1-1.csv", "param_updated_1-1.csv"} <= set(files)
    assert (
        subprocess.run([msprobe, "monitor", "status", str(tmp_path / "monitor")], capture_output=True).returncode == 0
    )


def test_a_rank_writes_one_file_and_the_loss_that_the_model_returns(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = torch.nn.Linear(4, 1)\n"
        "    def forward(self, x):\n        return {'loss': self.fc(x).square().mean()}\n\n\n"
        "net = Net()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n    loss = net(torch.ones(2, 4))['loss']\n    loss.backward()\n"
        "    optimizer.step()\n    optimizer.zero_grad()\n    print(loss.item())\n"
    )
    msprobe = os.path.join(os.path.dirname(sys.executable), "msprobe")
    command = [msprobe, "monitor", "--output", str(tmp_path / "monitor"), "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (rank,) = (tmp_path / "monitor").iterdir()
    assert sorted(path.name for path in rank.iterdir()) == ["heartbeat.json", "laws.json", "monitor.series"]
    show = [msprobe, "monitor", "show", str(tmp_path / "monitor"), "--metric", "loss", "--stat", "loss", "--json"]
    said = json.loads(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
    printed = [float(line) for line in done.stdout.splitlines() if line[:1].isdigit() and " " not in line]
    assert len(printed) == 3
    assert [pytest.approx(value, rel=1e-5) for value in printed] == said["rows"][0]["mean"]


def test_v2(run_script, tmp_path):
    done = run_script(HEAD + 'import monitor_v2_scenario\nmonitor_v2_scenario.train("out")\n')
    assert done.returncode == 0, done.stderr
    files = monitor_files.tables(str(tmp_path / "out/rank_0"))
    kinds = {
        "module": "forward backward",
        "weight_grad": "unreduced reduced",
        "optimizer": "exp_avg exp_avg_sq",
        "param": "",
    }
    assert sorted(files) == sorted(f"{kind}_step{part}.csv" for kind in kinds for part in ("0-1", "2-3"))
    header, *rows = files["weight_grad_step0-1.csv"]
    assert header == ["vpp_stage", "step", "module_name", "scope", "micro_step", "min", "max", "mean", "norm", "nans"]
    assert len(rows) == 2 * 2 * 30
    assert {row[3] for row in rows} == {"unreduced", "reduced"}
    assert rows[0][0] == "-1" and float(rows[0][8]) > 0


MANY = """
from msprobe.core.monitor_v2 import TrainerMonitorV2

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with open("v2.json", "w") as file:
    json.dump({"output_dir": "out", "monitors": {"module": {"enabled": True, "ops": ["norm"]}}}, file)
monitor = TrainerMonitorV2("v2.json", fr="pytorch")
monitor.start(model=model, optimizer=optimizer)
with torch.no_grad():
    for _ in range(4200):  # no step, as of an optimizer that is compiled
        model(torch.ones(1, 2))
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
monitor.stop()
"""


def test_calls_without_a_step_have_an_end(run_script, tmp_path):
    done = run_script(HEAD + MANY)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("further calls have no rows") == 1
    (rows,) = [rows for name, (_, *rows) in monitor_files.tables(str(tmp_path / "out/rank_0")).items()]
    assert len([row for row in rows if row[3] == "forward"]) == 2 * 4096

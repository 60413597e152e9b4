"""Changes told by the monitor: a planted fault is named while the training runs and afterwards, and what is then done."""

import json
import os

import pytest
from graph_cases import run

TRAINING = """
import json, os, sys
import torch
from msprobe.pytorch import TrainerMon
torch.set_num_threads(1)
torch.manual_seed(3)
with open("config.json", "w") as file:
    json.dump({"targets": {}, "wg_distribution": True, "param_distribution": True, "ops": ["norm", "min", "max"], "format": "api",
               "alert": {"dump": True, "rules": [{"rule_name": "ChangePoint", "args": {"false_alarms": 0.02}}],
                         "actions": {"dump_steps": 1, "command": ["tee", "told.json"]}}}, file)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
monitor = TrainerMon("config.json", params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
events = []
monitor.on_change(events.append)
teacher = torch.randn(8, 4)
for step in range(230):
    if step == 220:
        with torch.no_grad():
            model[2].weight[0, 0] += 1e-3
    x = torch.randn(16, 8)
    torch.nn.functional.mse_loss(model(x), x @ teacher).backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.close()
with open("events.json", "w") as file:
    json.dump(events, file)
"""


TWO_RANKS = """
import json, os, sys
import torch
import torch.distributed as dist

def train(rank):
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=2)
    from msprobe.pytorch import TrainerMon
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    monitor = TrainerMon("config.json", params_have_main_grad=False)
    monitor.set_monitor(model, optimizer)
    for step in range(216):
        if step == 206 and rank == 1:
            with torch.no_grad():
                model[2].weight[0, 0] += 1e-3
        torch.nn.functional.mse_loss(model(torch.randn(4, 8)), torch.randn(4, 4)).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        optimizer.zero_grad()
    monitor.close()
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.start_processes(train, nprocs=2, start_method="fork")
"""


@pytest.mark.deep
@pytest.mark.parametrize("way", ["file", "group"])
def test_all_ranks_dump_at_the_alarm_of_one(run_script, tmp_path, way):
    rules = [{"rule_name": "ChangePoint", "args": {"false_alarms": 0.02}}]
    config = {"targets": {}, "param_distribution": True, "ops": ["norm"], "format": "api"}
    config["alert"] = {"rules": rules, "actions": {"dump_steps": 1, "ranks": way}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run_script(TWO_RANKS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rank 1 reports a change at step 206") == 1, "rank 0 hears it"
    assert list(tmp_path.glob("monitor_output/*-rank1-*/alarm_step206/step0/rank*/dump.json"))
    heard = list(tmp_path.glob("monitor_output/*-rank0-*/alarm_step2*/step0/rank*/dump.json"))
    assert len(heard) == 1
    assert int(heard[0].parts[-4].removeprefix("alarm_step")) in range(206, 212)


@pytest.fixture
def monitored(run_script, tmp_path):
    """A run whose weight is changed behind the optimizer's back at step 220."""
    done = run_script(TRAINING)
    assert done.returncode == 0, done.stderr
    assert " it ends here" not in done.stderr
    return done, os.path.join(str(tmp_path), "monitor_output")


SHORT = """
import torch
from msprobe.pytorch import TrainerMon
import json, os, sys
torch.set_num_threads(1)
torch.manual_seed(5)
with open("config.json", "w") as file:
    json.dump({"targets": {}, "wg_distribution": True, "loss": True, "ops": ["norm"], "format": "api"}, file)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
monitor = TrainerMon("config.json", params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
teacher = torch.randn(8, 4)
for step in range(int(os.environ["STEPS"])):
    x = torch.randn(16, 8)
    y = (x @ teacher).argmax(1)
    if step >= int(os.environ["WRONG_FROM"]):
        y = (x @ -teacher).argmax(1)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    monitor.record_loss(loss.detach())
    optimizer.step()
    optimizer.zero_grad()
monitor.close()
"""


def short_run(run_script, tmp_path, steps, wrong_from):
    """A run of a classifier, its directory, whose labels are wrong from a step on."""
    output = tmp_path / f"run_{steps}_{wrong_from}"
    env = {"STEPS": str(steps), "WRONG_FROM": str(wrong_from), "MONITOR_OUTPUT_DIR": str(output)}
    done = run_script(SHORT, env=env)
    assert done.returncode == 0, done.stderr
    return str(output)


def test_wrong_labels_in_the_first_200_steps_are_told_with_their_step(run_script, tmp_path):
    output = short_run(run_script, tmp_path, 150, 132)
    text, data = judge(output), judge(output, "--json")
    assert text.returncode == data.returncode == 1
    told = json.loads(data.stdout)
    assert [(e["onset"], e["detector"], e["table"]) for e in told["events"]] == [(132, "leap", "loss")]
    assert told["judgement"]["kind"] == "suspicious"
    assert told["events"][0]["text"] in text.stdout
    assert "step 132: the loss, " in text.stdout and "from one step to the next" in text.stdout
    assert "no change that" not in text.stdout
    assert "step 132：损失，在相邻两步之间变为原来的" in judge(output, env={"LC_ALL": "zh_CN.UTF-8"}).stdout


def test_a_short_run_says_what_was_judged(run_script, tmp_path):
    healthy = short_run(run_script, tmp_path, 120, 10**6)
    done, data = judge(healthy), json.loads(judge(healthy, "--json").stdout)
    assert done.returncode == 0, done.stdout
    assert "no change that a healthy training would not have\nthe loss was judged from step 26 on" in done.stdout
    assert "series are judged from 200 monitored steps on" in done.stdout
    assert (data["loss"]["judged_from"], data["series_judged"], data["loss"]["not_decided"]) == (26, False, None)
    chinese = judge(healthy, env={"LC_ALL": "zh_CN.UTF-8"}).stdout
    assert "损失自 step 26 起被判断" in chinese and "起才被判断" in chinese

    shown = run(["monitor", "show", healthy, "--series", "loss"], check=False)
    assert shown.returncode == 0 and shown.stdout.startswith("loss loss, rank 0 of 1, steps 0 to 119"), shown.stderr
    assert (
        "no series of any metric has nowhere"
        in run(["monitor", "show", healthy, "--series", "nowhere"], check=False).stderr
    )

    few = judge(short_run(run_script, tmp_path, 20, 10**6))
    assert few.returncode == 5
    assert "too early to judge\nthe loss is judged from its value 27 on, and has 20" in few.stdout

    open_end = short_run(run_script, tmp_path, 120, 118)
    done, data = judge(open_end), json.loads(judge(open_end, "--json").stdout)
    assert done.returncode == 5
    assert "the last 2 losses, from step 118 on, are " in done.stdout
    assert (data["judgement"]["kind"], data["loss"]["not_decided"]["step"]) == ("too_early", 118)


def judge(directory, *options, env=None):
    return run(["monitor", "judge", directory, *options], check=False, env=env)


def test_planted_change_is_told_while_the_training_runs_and_afterwards(monitored, tmp_path):
    done, output = monitored
    events = json.loads((tmp_path / "events.json").read_text())
    assert [(e["told"], e["detector"], e["layers"]) for e in events] == [(220, "changed_outside", ["2"])]
    assert "step 220: the parameters of 2, changed between two steps of the optimizer" in done.stderr
    assert json.loads((tmp_path / "told.json").read_text())["onset"] == 220
    assert list((tmp_path / "monitor_output").glob("*/alarm_step220/step0/rank*/dump.json"))
    assert "changed between two steps" in (tmp_path / "monitor_output/anomaly_detected/rank0/anomaly.json").read_text()

    after = judge(output, "--json")
    assert after.returncode == 1, after.stderr
    told = json.loads(after.stdout)
    assert [(e["onset"], e["detector"], e["layers"]) for e in told["events"]] == [(220, "changed_outside", ["2"])]
    assert told["events"][0]["text"] == events[0]["text"]

    chinese = judge(output, env={"LC_ALL": "zh_CN.UTF-8"})
    assert "step 220：2 的参数，在优化器的两次更新之间被改变" in chinese.stdout
    assert "没有损失的序列" in chinese.stdout

    loss = tmp_path / "loss.csv"
    loss.write_text("step,loss\n" + "".join(f"{i},{2 + 0.01 * ((i * 7919) % 13)}\n" for i in range(230)))
    text = judge(output, "--loss", str(loss)).stdout
    assert "changed between two steps of the optimizer, the loss is 1.0" in text and " times as large at most\n" in text

    # What to do next, until it was done.
    place = f"{output}_step220"
    head = f"next: msprobe run --level mix --step 219-220 --dump-path {place} -- "
    assert text.splitlines()[-1].startswith(head) and text.endswith("script.py\n")
    for step in ("step219", "step220"):
        os.makedirs(os.path.join(place, step))
    command = f"msprobe compare -tp {place}/step220 -gp {place}/step219 -o {place}_compare"
    assert judge(output).stdout.splitlines()[-1] == f"next: {command}"
    assert json.loads(judge(output, "--json").stdout)["next"] == command
    os.makedirs(f"{place}_compare")
    assert "next:" not in judge(output).stdout


def test_what_is_no_run_is_refused(tmp_path):
    done = judge(str(tmp_path))
    assert done.returncode == 3
    assert "no monitor.series" in done.stderr
    (tmp_path / "monitor.series").write_bytes(b"nothing of the kind")
    assert "is not a file of series" in judge(str(tmp_path)).stderr
    assert judge(str(tmp_path), "--false-alarms", "0").returncode == 2
    (tmp_path / "loss.txt").write_text("no numbers")
    assert judge(str(tmp_path), "--loss", str(tmp_path / "loss.txt")).returncode == 3


@pytest.mark.parametrize(
    "alert",
    [
        {"rules": [{"rule_name": "ChangePoint", "args": {"false_alarms": 0}}]},
        {"rules": [{"rule_name": "ChangePoint"}], "actions": {"dump_steps": 1000}},
        {"rules": [{"rule_name": "ChangePoint"}], "actions": {"command": "tee"}},
        {"rules": [{"rule_name": "ChangePoint"}], "actions": {"mail": True}},
        {"rules": [{"rule_name": "ChangePoint"}], "actions": {"ranks": "radio"}},
    ],
)
def test_settings_out_of_range_are_refused(alert):
    from msprobe._monitor.config import check_config

    with pytest.raises((TypeError, ValueError), match="allowed: "):
        check_config({"alert": alert}, "config.json")

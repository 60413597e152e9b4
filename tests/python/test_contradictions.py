"""Evidence that must not end well: no command prints it and concludes the opposite, and none lets --fail-on pass."""

import json
import math
import os
import subprocess
import sys

import pytest
import torch
from graph_cases import run

GOOD = {"bit_equal", "round_off", "another_way", "random"}


def assert_bad(*args, fail_on="suspicious"):
    """The conclusion of a command that was given what must not end well."""
    done = run([*args, "--json"], check=False)
    conclusion = json.loads(done.stdout)["judgement"]
    assert conclusion["kind"] not in GOOD, conclusion
    strict = run([*args, "--fail-on", fail_on], check=False)
    assert strict.returncode in (1, 5), strict.stderr
    return json.loads(done.stdout), strict


def write_log(path, norm=1.5, rate=1e-4, loss=None):
    loss = loss or (lambda step: 3 - 0.01 * step)
    lines = [f"step: {n} loss: {loss(n):.6f} grad_norm: {norm} lr: {rate}" for n in range(1, 41)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ({"norm": 3.0}, "norm_differs"),
        ({"norm": math.nan}, "norm_differs"),
        ({"rate": 2e-4}, "rate_differs"),
        ({"loss": lambda step: 3 - 0.01 * step + (6.9 if step > 20 else 0)}, "diverges"),
    ],
    ids=["norms twice as large", "norms are NaN", "another learning rate", "a jump after equal steps"],
)
def test_curves_with_equal_losses(tmp_path, other, verdict):
    a, b = write_log(tmp_path / "a.log"), write_log(tmp_path / "b.log", **other)
    result, _ = assert_bad("curves", a, b)
    assert result["verdict"] == verdict and not result["fine"]
    assert run(["curves", a, a, "--fail-on", "round-off"], check=False).returncode == 0


def test_curves_where_both_are_nan(tmp_path):
    a, b = write_log(tmp_path / "a.log", norm=math.nan), write_log(tmp_path / "b.log", norm=math.nan)
    result, done = assert_bad("curves", a, b)
    assert result["verdict"] == "not_finite" and "NaN or infinite at 40 steps of A and 40 of B" in done.stdout


def test_curves_of_trainer_states_read_no_summary(tmp_path):
    """`train_loss` is the mean of a run: two equal trainings of which one was stopped are equal."""
    steps = [{"step": n, "loss": 3 - 0.1 * n, "epoch": n / 10} for n in range(1, 11)]
    end = {"step": 10, "train_loss": 2.38, "train_runtime": 9.0, "total_flos": 1.0, "epoch": 1.0}
    for name, entries in (("a", [*steps, end]), ("b", steps)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"log_history": entries}))
    done = run(["curves", tmp_path / "a.json", tmp_path / "b.json", "--json"])
    assert json.loads(done.stdout)["verdict"] == "equal" and json.loads(done.stdout)["notes"] == []


def test_doctor_without_a_rule_that_applies(tmp_path):
    """A configuration about which no rule says anything is not seen, and no pass."""
    for side in "ab":
        (tmp_path / side).mkdir()
        (tmp_path / side / "config.yaml").write_text("name: a run\nnotes: nothing that a rule is about\n")
    done = run(["doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out", "--json"], check=False)
    result = json.loads(done.stdout)
    config = next(stage for stage in result["stages"] if stage["stage"] == "config")
    assert config["verdict"] != "pass" and done.returncode == 5
    assert result["judgement"]["kind"] not in GOOD
    text = run(["doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out"], check=False)
    assert "0 rules" not in text.stdout


def test_doctor_of_runs_that_are_both_nan(tmp_path):
    for side in "ab":
        (tmp_path / side).mkdir()
        write_log(tmp_path / side / "train.log", loss=lambda step: 3 - 0.01 * step if step < 10 else math.nan)
    result, done = assert_bad("doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert result["outcome"] == "undecided" and "both have NaN or infinities, from step 10 on" in done.stdout


@pytest.mark.parametrize("first", [0, 1, 9])
def test_doctor_says_the_steps_of_the_log(tmp_path, first):
    for side in "ab":
        (tmp_path / side).mkdir()
        lines = [
            f"step: {n} loss: {3 - 0.01 * n + (1 if side == 'b' and n >= first + 20 else 0):.6f}"
            for n in range(first, first + 40)
        ]
        (tmp_path / side / "train.log").write_text("\n".join(lines) + "\n")
    args = ["doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out"]
    done = run(args, check=False)
    assert done.returncode == 1 and f"the curves part at step {first + 20}" in done.stdout
    assert json.loads(run([*args, "--json"], check=False).stdout)["log_step"] == first + 20


def test_doctor_counts_lines_of_a_resumed_trainer_by_their_epochs(tmp_path):
    """The log of a Trainer has no steps; one that begins at step 9 is held against the steps 9 and on of the other."""
    for side, begin in (("a", 1), ("b", 9)):
        (tmp_path / side).mkdir()
        entries = [{"loss": round(3 - 0.05 * n, 4), "epoch": round(n / 18, 4)} for n in range(begin, 19)]
        (tmp_path / side / "train.log").write_text("\n".join(map(str, entries)) + "\n")
    done = run(["doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out", "--json"], check=False)
    result = json.loads(done.stdout)
    assert result["outcome"] != "parted", result["headline"]
    curves = json.loads(run(["curves", tmp_path / "a/train.log", tmp_path / "b/train.log", "--json"]).stdout)
    assert curves["verdict"] == "equal" and curves["curves"][0]["first_step"] == 9


DECAY = """
import sys, torch
from msprobe.pytorch import OptimizerRecord
torch.manual_seed(0)
model = torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)
with OptimizerRecord(sys.argv[1], optimizer, model):
    for _ in range(2):
        model(torch.randn(8, 64, dtype=torch.bfloat16)).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_weight_decay_that_rounds_away_is_said_by_replay_and_doctor(tmp_path):
    for side in "ab":
        (tmp_path / side).mkdir()
        script = [sys.executable, "-c", DECAY, str(tmp_path / side / "msprobe_optimizer")]
        done = subprocess.run(script, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        write_log(tmp_path / side / "train.log")
    record = tmp_path / "a" / "msprobe_optimizer"
    result, done = assert_bad("optimizer_replay", record)
    assert result["a"]["cautions"] and "does what its hyperparameters say" not in done.stdout
    assert run(["optimizer_replay", record], check=False).returncode == 0  # as ever without --fail-on
    result, done = assert_bad("doctor", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert result["outcome"] == "undecided" and "the optimizer of A: a weight decay of" in done.stdout


def write_laws(directory, steps, **law):
    """A monitored run of which laws.json says this, with as many steps as the judge wants to see."""
    code = f"""
import json, torch
from msprobe.pytorch import TrainerMon
torch.manual_seed(3)
json.dump({{"targets": {{}}, "wg_distribution": True, "ops": ["norm"], "format": "api"}}, open("config.json", "w"))
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
monitor = TrainerMon("config.json", params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
for _ in range({steps}):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.close()
"""
    env = {**os.environ, "MONITOR_OUTPUT_DIR": str(directory / "out")}
    done = subprocess.run([sys.executable, "-c", code], cwd=directory, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place = next((directory / "out").rglob("monitor.series")).parent
    (place / "laws.json").write_text(json.dumps({"rank": 0, "step": 1, "laws": {"accumulation": law}}))
    return directory / "out"


def test_a_law_that_was_looked_at_in_part_is_not_held(tmp_path):
    why = "the model returns no loss"
    out = write_laws(tmp_path, 220, law="x", looks=12, not_checked="", partly_not_checked=why, broken=[], notes=[])
    result, done = assert_bad("monitor", "judge", out)
    assert result["laws_held"] == 0 and result["judgement"]["kind"] == "not_seen"
    assert f"law accumulation was looked at in part: {why}" in done.stdout


def test_a_run_of_few_steps_is_too_early_to_judge(tmp_path):
    out = write_laws(tmp_path, 20, law="x", looks=12, not_checked="", partly_not_checked="", broken=[], notes=[])
    result, done = assert_bad("monitor", "judge", out)
    assert result["judgement"]["kind"] == "too_early" and "no change" not in done.stdout
    assert run(["monitor", "judge", out], check=False).returncode == 5


def test_checkpoints_without_a_tensor_to_compare(tmp_path):
    """Two files without states of an optimizer are not two equal ones."""
    for name in "ab":
        torch.save({"weight": torch.ones(3)}, tmp_path / f"{name}.pt")
    done = run(["ckpt", "compare", tmp_path / "a.pt", tmp_path / "b.pt", "--optimizer"], check=False)
    assert done.returncode != 0
    both = run(["ckpt", "compare", tmp_path / "a.pt", tmp_path / "b.pt", "--json"])
    assert json.loads(both.stdout)["judgement"]["kind"] == "bit_equal"
    torch.save({"weight": torch.tensor([1.0, math.nan, 1.0])}, tmp_path / "b.pt")
    assert_bad("ckpt", "compare", tmp_path / "a.pt", tmp_path / "b.pt", fail_on="bug")


def test_a_comparison_of_a_model_that_is_wrong(tmp_path):
    """compare ends with 0 as ever; with --fail-on it does not."""
    code = """
import sys, torch
from msprobe.pytorch import PrecisionDebugger
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
if sys.argv[2] == "b":
    model[2].weight.data *= 1.25
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="statistics", level="mix")
debugger.start(model)
model(torch.randn(4, 8)).sum().backward()
debugger.stop()
debugger.step()
"""
    for name in "ab":
        done = subprocess.run([sys.executable, "-c", code, tmp_path / name, name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    pair = ["-tp", tmp_path / "b", "-gp", tmp_path / "a", "-o", tmp_path / "out"]
    for command in ("compare", "graph_visualize"):
        assert_bad(command, *pair)
        assert run([command, *pair], check=False).returncode == 0
    same = ["-tp", tmp_path / "a", "-gp", tmp_path / "a", "-o", tmp_path / "out"]
    for command in ("compare", "graph_visualize"):
        assert run([command, *same, "--fail-on", "suspicious"], check=False).returncode == 0


@pytest.mark.parametrize(
    "command",
    ["compare", "graph_visualize", "overflow_check", "curves", "doctor", "ckpt compare", "config_check"]
    + ["optimizer_replay", "certify", "parity", "monitor judge", "acc_check", "lab", "check_kernels"],
)
def test_each_command_that_judges_has_fail_on(command):
    shown = run([*command.split(), "--help"]).stdout
    assert "--fail-on" in shown and "ask-a-person" in shown


EMA = """
import copy, json, torch
from msprobe.pytorch import TrainerMon
torch.manual_seed(3)
json.dump({"targets": {}, "ops": ["norm"], "wg_distribution": True, "laws": True}, open("config.json", "w"))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
monitor = TrainerMon("config.json", params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
average = [p.detach().clone() for p in model.parameters()]
for wrong in (3, "copy", [1, 2], {}, None):
    try:
        monitor.watch_ema(wrong)
        raise SystemExit(f"{wrong!r} was taken")
    except TypeError as error:
        assert "watch_ema takes a module, or a dict or list of tensors" in str(error)
monitor.watch_ema(FORM, 0.9)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for mean, p in zip(average, model.parameters()):
            mean.add_(p - mean, alpha=SIGN)
monitor.close()
"""


@pytest.mark.parametrize("sign", [0.1, -0.1], ids=["an average", "the wrong sign"])
@pytest.mark.parametrize("form", ["average", "tuple(average)", "dict(zip(dict(model.named_parameters()), average))"])
def test_an_averaged_copy_may_be_tensors_and_a_wrong_one_ends_nothing(tmp_path, form, sign):
    env = {**os.environ, "MONITOR_OUTPUT_DIR": str(tmp_path / "out")}
    code = EMA.replace("FORM", form).replace("SIGN", str(sign))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    laws = json.loads(next((tmp_path / "out").rglob("laws.json")).read_text())["laws"]
    assert laws["ema"]["looks"] > 0 and bool(laws["ema"]["broken"]) is (sign < 0)
    assert laws["finite_step"]["looks"] == 6 * 4 and "Traceback" not in done.stderr


def test_what_was_looked_at_in_part_is_said_at_the_end(tmp_path):
    """The model returns no loss: whether it is divided by the micro steps was not seen."""
    code = EMA.replace("monitor.watch_ema(FORM, 0.9)\n", "").replace("SIGN", "0.1")
    code = code.replace(
        "monitor.set_monitor(model, optimizer)", "monitor.set_monitor(model, optimizer, grad_acc_steps=2)"
    ).replace("    optimizer.step()\n", "    model(torch.randn(8, 4)).pow(2).mean().backward()\n    optimizer.step()\n")
    env = {**os.environ, "MONITOR_OUTPUT_DIR": str(tmp_path / "out")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "1 looked at in part" in said and "law accumulation looked at in part: the model returns no loss" in said
    laws = json.loads(next((tmp_path / "out").rglob("laws.json")).read_text())["laws"]
    held = sum(law["looks"] > 0 and not law["broken"] and not law["partly_not_checked"] for law in laws.values())
    assert f"laws: {held} held, 0 broken" in said

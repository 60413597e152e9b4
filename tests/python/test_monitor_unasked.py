"""What msprobe monitor watches of a training without a configuration, and what it says of what it does not watch."""

import json
import re
import subprocess
import sys

import monitor_files
import pytest
from graph_cases import find_command

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
class Sample:
    def __init__(self, tokens):
        self.tokens = tokens
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(16, 8), nn.Linear(8, 16)
    def forward(self, batch):
        return self.head(self.table(batch.tokens if isinstance(batch, Sample) else batch))
def batch():
    return torch.randint(0, 16, (4, 6))
def loss_of(model, tokens, given=None):
    return nn.functional.cross_entropy(model(tokens if given is None else given).flatten(0, 1), tokens.flatten())
def step(*optimizers):
    for one in optimizers:
        one.step()
        one.zero_grad()
"""


def monitored(directory, script, *options):
    """What was said, and the tables of rank 0."""
    (directory / "train.py").write_text(HEAD + script)
    given = ["monitor", "--csv", *options, "--output", str(directory / "monitor"), "--", sys.executable, "train.py"]
    done = subprocess.run([find_command(), *given], capture_output=True, text=True, cwd=directory, check=False)
    assert done.returncode == 0, done.stderr
    rows = {}
    tables = monitor_files.tables(monitor_files.directories(str(directory))[0])
    for name, (header, *lines) in sorted(tables.items(), key=lambda item: int(re.search(r"_(\d+)-", item[0]).group(1))):
        rows.setdefault(re.sub(r"_\d+-\d+\.csv", "", name), []).extend(dict(zip(header, line)) for line in lines)
    return done.stderr, rows


LOSSES = {
    "plain": ("loss.backward()", [1, 1, 1, 1]),
    "by hand": ("(loss * 64 if s > 1 else loss).backward()", [1, 1, 64, 64]),
    "of micro steps": ("(loss / 4).backward()", [0.25] * 4),
    "with a scaler": ("scaler.scale(loss * 2).backward()", [2] * 4),
    "of parts": ("(loss + 0.1 * loss).backward()", [1] * 4),
}


@pytest.mark.parametrize("case", LOSSES)
def test_the_factor_of_the_loss_comes_from_its_graph(tmp_path, case):
    backward, factors = LOSSES[case]
    script = f"""
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for s in range(4):
    optimizer.param_groups[0]["lr"] = 1e-3 * (s + 1)
    loss = loss_of(model, batch())
    {backward}
    step(optimizer)
"""
    _, rows = monitored(tmp_path, script)
    assert [float(row["value"]) for row in rows["loss_factor"]] == pytest.approx(factors)
    assert [float(row["value"]) for row in rows["learning_rate"]] == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3])
    assert len(rows["model_input"]) == len(rows["input_checksum"]) == 4
    laws = json.loads(next((tmp_path / "monitor").glob("*rank0*/laws.json")).read_text())["laws"]
    assert {"clip", "lr_schedule", "loss_scale", "update"} <= set(laws) and "batch_repeats" not in laws


def test_of_a_loss_that_the_model_returns_what_is_done_to_it_is_the_factor(tmp_path):
    script = """
class Whole(Net):
    def forward(self, tokens):
        return nn.functional.cross_entropy(super().forward(tokens).flatten(0, 1), tokens.flatten()) * 3
model = Whole()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for s in range(3):
    loss = model(batch())
    (loss / 2).backward()
    step(optimizer)
"""
    said, rows = monitored(tmp_path, script)
    assert [float(row["value"]) for row in rows["loss_factor"]] == pytest.approx([0.5] * 3)
    assert len(rows["loss"]) == 3
    # An optimizer without moments says so once, and is not warned of.
    assert said.count("exp_avg") == 2 and "SGD keeps no exp_avg and no exp_avg_sq" in said
    assert "never had a value" not in said and "have no value" not in said


@pytest.mark.parametrize("given", ["tokens", "Sample(tokens)", "{'batch': [tokens]}['batch'][0]"])
def test_a_batch_is_found_in_what_holds_it(tmp_path, given):
    script = f"""
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for s in range(8):
    tokens = batch()
    loss_of(model, tokens, {given}).backward()
    step(optimizer)
"""
    (tmp_path / "laws.json").write_text(json.dumps({"targets": {}, "laws": True, "input_distribution": True}))
    said, rows = monitored(tmp_path, script, "--config", str(tmp_path / "laws.json"))
    assert len({row["checksum"] for row in rows["input_checksum"]}) == 8
    assert "law batch_repeats" not in said and "no tensor" not in said


def test_a_model_that_is_given_no_tensor_is_said_to_be(tmp_path):
    script = """
class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
    def forward(self, number):
        return (self.weight * number).sum()
model = Numbers()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for s in range(4):
    model(float(s)).backward()
    step(optimizer)
"""
    (tmp_path / "laws.json").write_text(json.dumps({"targets": {}, "laws": True}))
    said, _ = monitored(tmp_path, script, "--config", str(tmp_path / "laws.json"))
    assert "law batch_repeats not checked: no tensor was found in what the model is given" in said


def test_a_log_with_fewer_losses_does_not_displace_those_of_the_monitor(tmp_path):
    script = """
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for s in range(40):
    loss = loss_of(model, batch())
    loss.backward()
    step(optimizer)
    if s % 10 == 0:
        print(f"step {s} loss {loss.item():.4f}")
"""
    monitored(tmp_path, script)
    (tmp_path / "train.log").write_text("".join(f"step {step} loss 2.77\n" for step in range(0, 40, 10)))
    given = [find_command(), "monitor", "judge", "monitor", "--loss", "train.log", "--json"]
    done = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout)
    assert (told["loss"]["values"], told["loss"]["judged_from"], told["next"]) == (40, 26, "")


TOWERS = """
left, right = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))
left_optimizer, right_optimizer = {optimizers}
for s in range(3):
    (left(torch.randn(2, 4)) * right(torch.randn(2, 4))).sum().backward()
    step(left_optimizer, *([] if left_optimizer is right_optimizer else [right_optimizer]))
"""


def test_all_models_of_an_optimizer_are_watched(tmp_path):
    one = "(torch.optim.AdamW([*left.parameters(), *right.parameters()], 1e-3),) * 2"
    said, rows = monitored(tmp_path, TOWERS.format(optimizers=one))
    assert "2 models are watched, which AdamW trains: 0: Linear, 1: Sequential" in said
    stages = {(row["vpp_stage"], row["name"]) for row in rows["grad_reduced"]}
    assert stages == {("0", "weight"), ("0", "bias"), ("1", "0.weight"), ("1", "0.bias")}


def test_a_model_of_another_optimizer_is_named(tmp_path):
    two = "torch.optim.AdamW(left.parameters(), 1e-3), torch.optim.SGD(right.parameters(), 1e-3)"
    said, rows = monitored(tmp_path, TOWERS.format(optimizers=two))
    assert said.count("another model, of which SGD trains 2 tensors, is not watched") == 1
    assert len({row["name"] for row in rows["grad_reduced"]}) == 2


def test_tensors_of_no_module_are_counted(tmp_path):
    script = """
model, scale = Net(), nn.Parameter(torch.ones(()))
optimizer = torch.optim.AdamW([*model.parameters(), scale], 1e-3)
for s in range(3):
    (loss_of(model, batch()) * scale).backward()
    step(optimizer)
"""
    said, rows = monitored(tmp_path, script)
    assert "1 tensors that AdamW trains are in no module that is watched" in said
    assert "loss_factor" not in rows or all(float(row["value"]) == 1 for row in rows["loss_factor"])


@pytest.mark.parametrize("top", [1.0, 5.0])
def test_a_rate_that_goes_back_to_where_it_was_restarts(tmp_path, top):
    script = f"""
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for s in range(40):
    optimizer.param_groups[0]["lr"] = 1e-3 * (1 - 0.95 * (s % 20) / 20) * ({top} if s >= 20 else 1)
    loss_of(model, batch()).backward()
    step(optimizer)
"""
    said, _ = monitored(tmp_path, script)
    law = json.loads(next((tmp_path / "monitor").glob("*rank0*/laws.json")).read_text())["laws"]["lr_schedule"]
    assert [entry["step"] for entry in law["broken"]] == ([] if top == 1 else [20])
    assert ("the learning rate jumps from" in said) == (top > 1)
    assert ["as a restart does" in note["text"] for note in law["notes"]] == ([True] if top == 1 else [])

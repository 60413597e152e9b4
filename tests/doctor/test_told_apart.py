"""What the dumps of two runs differ in: data, a setting of a call, both at once, or only how the work is written and cut."""

import json
import os
import subprocess
import sys

import pytest
from graph_cases import find_command

RUN = """
import json, sys
import torch
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger

kind, out = sys.argv[1:3]
torch.manual_seed(5)
torch.set_num_threads(1)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 24)
        self.norm = torch.nn.LayerNorm(24)
        self.hidden = torch.nn.Linear(24, 24)
        self.tags = torch.nn.Linear(24, 9)

    def forward(self, words):
        h = self.hidden(self.words(words))
        h = F.softplus(h, 1.002 if "beta" in kind else 1)
        if "again" in kind:
            h = F.relu(h)
        h = self.norm(h.half()).float() if "half" in kind else self.norm(h)
        return self.tags(h)


model = Tagger()
if "half" in kind:
    model.norm.half()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
with open("config.json", "w") as file:
    json.dump({"task": "statistics", "dump_path": out + "/msprobe_dump", "rank": [], "step": [0, 1], "level": "mix",
               "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}, file)
debugger = PrecisionDebugger(config_path="config.json")
log = open(out + "/train.log", "w")
for step in range(8):
    generator = torch.Generator().manual_seed(step)
    words = torch.randint(0, 40, (12, 10), generator=generator)
    labels = words % 9
    if "labels" not in kind:
        labels = labels.masked_fill(words < 6, -100)
    debugger.start(model=model)
    optimizer.zero_grad()
    total = 0
    parts = 3 if "cut" in kind else 1
    for w, y in zip(words.chunk(parts), labels.chunk(parts)):
        loss = F.cross_entropy(model(w).flatten(0, 1), y.flatten(), reduction="sum") / (labels >= 0).sum()
        loss.backward()
        total += loss.item()
    norm = torch.stack([p.grad.float().norm() for p in model.parameters()]).norm().item()
    optimizer.step()
    debugger.stop()
    debugger.step()
    log.write(f" iteration {step + 1}/ 8 | learning rate: 5.000000E-02 | lm loss: {total:.5E} | grad norm: {norm:.4E} |\\n")
log.close()
"""


def doctor(tmp_path, kind):
    (tmp_path / "train.py").write_text(RUN)
    for side, what in (("A", "plain"), ("B", kind)):
        (tmp_path / side).mkdir()
        done = subprocess.run(
            [sys.executable, tmp_path / "train.py", what, tmp_path / side], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
    command = [find_command(), "doctor", tmp_path / "A", tmp_path / "B", "-o", tmp_path / "out", "--json"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(done.stdout)


def test_labels_are_data_and_the_second_fault_is_told(tmp_path):
    said = doctor(tmp_path, "labels half")
    assert (said["outcome"], said["stage"], said["bug"]) == ("parted", "data", True), said
    assert said["cause"] == "input Functional.cross_entropy.0.forward.input.1"
    assert "Min -100" in said["cause_text"]["en"]
    assert any("float16" in also["en"] and "loss of step 1" in also["en"] for also in said["also"]), said["also"]


def test_a_setting_of_a_call_is_the_cause_however_small(tmp_path):
    said = doctor(tmp_path, "beta")
    assert (said["outcome"], said["stage"]) == ("parted", "step1_loss"), said
    assert said["cause"] == "argument Functional.softplus.0.forward"


@pytest.mark.parametrize("kind", ["again", "cut"])
def test_code_that_is_written_or_cut_otherwise_is_no_difference(tmp_path, kind):
    said = doctor(tmp_path, kind)
    assert said["outcome"] in ("rounding", "agree"), said

"""Laws of a training step: each breaks where its bug is planted, none in the same training without it."""

import json
import os
import subprocess
import sys

import pytest
from conftest import REPO
from msprobe._monitor.law_ranks import FILE, RankLines
from msprobe._monitor.laws import LAWS, read_laws

HERE = f"""
import sys, gc, json, os
sys.path.insert(0, {str(REPO / "tests" / "monitor")!r})
import torch
torch.set_num_threads(1)
import law_bugs, law_bugs_apart, law_runs
"""
# One for each law; publish_laws.py runs all.
QUICK = (
    "zero_grad_forgotten",
    "zero_grad_before_step",
    "zero_grad_at_each_micro_step",
    "loss_not_divided",
    "given_loss_not_divided",
    "encoder_detached",
    "steps_with_nan",
    "new_head_without_optimizer",
    "tie_lost",
    "bfloat16_updates_lost",
    "clip_after_step",
    "clip_of_a_used_up_generator",
    "clip_before_unscale",
    "step_without_scaler",
    "adamw_without_correction",
    "scheduler_of_another_optimizer",
    "warm_up_in_each_epoch",
    "evaluation_mode_stays",
    "running_statistics_frozen",
    "first_batch_for_ever",
    "epochs_in_one_order",
    "padding_learns",
    "recompute_without_generator",
    "experts_stay_equal",
    "decay_exchanged",
    "frozen_layer_has_momentum",
    "ranks_read_the_same",
    "norms_drift_apart",
)
RUN = """
found = {}
for case in law_bugs.CASES:
    if case.name in %r:
        found[case.name] = [list(case.laws), *(sorted(law_runs.run_case(case, wrong)[0]) for wrong in (True, False))]
        gc.collect()
json.dump(found, open("found.json", "w"))
"""


def test_each_law_tells_its_bug_and_is_silent_without_it(run_script, tmp_path):
    done = run_script(HERE + RUN % (QUICK,), env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "it ends here" not in done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found) == set(QUICK)
    assert {name: wrong for name, (laws, wrong, _) in found.items() if not set(laws) & set(wrong)} == {}
    assert {name: right for name, (_, _, right) in found.items() if right} == {}


TRAINERS = """
import law_trainers
json.dump({case.name: [law_runs.run_case(case, wrong) for wrong in (True, False)] for case in law_trainers.TRAINERS}, open("found.json", "w"))
"""


@pytest.mark.deep
def test_trainings_by_libraries(run_script, tmp_path):
    done = run_script(HERE + TRAINERS, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert {name: right for name, (_, (right, _)) in found.items() if right} == {}
    assert all(len(looked) > 10 for _, (_, looked) in found.values())
    assert set(found["HF Trainer"][0][0]) == {"in_optimizer"}


PLAIN = """
from law_models import Language, text
from msprobe.pytorch import TrainerMon

def train(laws):
    torch.manual_seed(3)
    model = Language(tied=True, dropout=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    told = []
    if laws:
        with open("config.json", "w") as file:
            json.dump({"laws": {"except": ["head"]}, "health": {"every": 1}, "targets": {}}, file)
        monitor = TrainerMon("config.json", params_have_main_grad=False)
        monitor.on_change(told.append)
        monitor.set_monitor(model, optimizer)
    losses = []
    for step, tokens in enumerate(text(8)):
        optimizer.zero_grad()
        loss = model(tokens, labels=tokens)["loss"]
        loss.backward()
        if step == 5:
            model.layers[0].up.weight.grad[0, 0] = float("inf")
        losses.append(loss.item())
        optimizer.step()
    if laws:
        monitor.close()
    return losses, [p.detach().clone() for p in model.parameters()], torch.get_rng_state(), told

bare, with_laws = train(False), train(True)
assert repr(bare[0]) == repr(with_laws[0])
assert all(torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) for a, b in zip(bare[1], with_laws[1]))
assert torch.equal(bare[2], with_laws[2])
json.dump(with_laws[3], open("told.json", "w"))
"""


def test_the_training_stays_what_it_is_and_what_breaks_is_told_everywhere(run_script, tmp_path):
    done = run_script(HERE + PLAIN, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    first = told[0]
    assert first["detector"] == "law_finite_step" and first["onset"] == 5 and first["rank"] == 0
    assert first["layers"] == ["layers.0.up.weight"]
    assert "law finite_step, step 5: layers.0.up.weight: the optimizer steps with a gradient" in done.stderr
    assert "monitor: law replicas not checked: there is one rank" in done.stderr
    (directory,) = (tmp_path / "monitor").glob("*-rank0-*")
    laws = json.loads((directory / "laws.json").read_text())["laws"]
    assert laws["finite_step"]["broken"][0]["name"] == "layers.0.up.weight"
    assert laws["update"]["looks"] > 0 and laws["replicas"]["not_checked"] == "there is one rank"
    beat = json.loads((directory / "heartbeat.json").read_text())
    assert any(line.startswith("law finite_step broken from step 5 on") for line in beat["laws"])
    msprobe = os.path.join(os.path.dirname(sys.executable), "msprobe")
    judged = subprocess.run([msprobe, "monitor", "judge", tmp_path / "monitor"], capture_output=True, text=True)
    assert judged.returncode == 1, judged.stderr
    assert "step 5: law finite_step broken, layers.0.up.weight: the optimizer steps with a gradient" in judged.stdout
    anomalies = json.loads((tmp_path / "monitor" / "anomaly_detected" / "rank0" / "anomaly.json").read_text())
    assert any("law_finite_step" in key for key in anomalies)
    tables = {path.name for path in directory.glob("health_*_7-7.csv")}
    assert {"health_weight_7-7.csv", "health_activation_7-7.csv", "health_logits_7-7.csv"} <= tables


class Store(dict):
    def set(self, key, value):
        self[key] = value.encode()

    def check(self, keys):
        return all(key in self for key in keys)


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "null",
        "[" * 100_000,
        "NaN",
        '{"step": 0}',
        '{"step": [], "parameters": {}, "parts": {}}',
        '{"step": 0, "parameters": {"a": {}}, "parts": {}}',
        '{"step": 0, "parameters": {"a": 1}, "parts": {"a": []}}',
        '{"step": 0, "parameters": {"a": 1}, "parts": {}, "samples": {"a": [[1], [1, 2]]}}',
        '{"step": 0, "parameters": {"a": 1}, "parts": {}, "batch": [[]]}',
        "\\xff",
    ],
)
def test_lines_of_ranks_that_are_none_are_left_out(tmp_path, hostile):
    store, lines = Store(), []
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
        lines.append(RankLines(str(tmp_path / str(rank)), rank, store, 1, 2))
    good = {"step": 3, "parameters": {"a": 1}, "parts": {}}
    (tmp_path / "1" / FILE).write_text(hostile + "\n" + json.dumps(good) + "\n" + '{"step": 4, "param')
    lines[0].tell(good)
    assert lines[0].complete() == [{0: good, 1: good}]
    assert "has a line that is none" in lines[0].why
    assert lines[0].complete() == []


def test_a_rank_that_begins_later_is_missing_no_more_once_it_is_read(tmp_path):
    store, good = Store(), {"step": 0, "parameters": {"a": 1}, "parts": {}}
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
    first = RankLines(str(tmp_path / "0"), 0, store, 1, 2)
    first.tell(good)
    assert first.complete() == [] and first.why == "rank 1 has no monitor"
    second = RankLines(str(tmp_path / "1"), 1, store, 1, 2)
    assert first.complete() == [] and "is not there" in first.why
    second.tell(good)
    assert first.complete() == [{0: good, 1: good}] and first.why == ""


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"replica": True}, "laws has replica"),
        ({"tied": 1}, "laws: tied is 1"),
        ({"every": 1}, "laws: every is 1"),
        ({"clip_norm": -1}, "laws: clip_norm is -1"),
        ({"except": "head"}, "laws: except is 'head'"),
        (3, "laws is 3"),
    ],
)
def test_wrong_keys_are_refused(given, error):
    with pytest.raises((TypeError, ValueError), match=error):
        read_laws(given, "here")


def test_each_law_has_a_switch():
    assert not read_laws(False, "here").on
    off = read_laws(dict.fromkeys(LAWS, False), "here")
    assert not any(off.on.values()) and set(off.on) == set(LAWS)
    config = read_laws({"every": 10, "first": 3}, "here")
    assert [step for step in range(25) if config.is_checked(step)] == [0, 1, 2, 10, 11, 20, 21]

"""msprobe doctor and preflight on what is left of runs: files of all kinds, nothing, and what is broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from cases import CASES
from doctor_runs import REPO, Runner
from graph_cases import find_command

MINDSPORE = REPO / ".venv-ms" / "bin" / "python"


def msprobe(*args, language="C.UTF-8"):
    command = [find_command(), *map(str, args)]
    environment = {**os.environ, "LC_ALL": language}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def doctor(tmp_path, *args):
    done = msprobe("doctor", tmp_path / "A", tmp_path / "B", "-o", tmp_path / "out", "--json", *args)
    assert done.returncode in (0, 1, 5), done.stderr
    said = json.loads(done.stdout)
    assert json.loads((tmp_path / "out" / "msprobe_doctor.json").read_text()) == said
    assert done.returncode == {"agree": 0, "rounding": 0, "parted": 1, "undecided": 5}[said["outcome"]]
    return said


def write_log(run, losses, rate=0.01):
    run.mkdir(exist_ok=True)
    lines = [f" iteration {i + 1}/ 99 | learning rate: {rate:.6E} | lm loss: {v:.6E} |" for i, v in enumerate(losses)]
    (run / "train.log").write_text("\n".join(lines))


def write_batches(run, tokens):
    for step, values in enumerate(tokens):
        path = run / "batches" / f"step_{step}" / "rank_0"
        path.mkdir(parents=True)
        np.save(path / "tokens.npy", values)
        np.save(path / "labels.npy", np.roll(values, -1, axis=-1))


def batches(count=4):
    random = np.random.default_rng(0)
    return [random.integers(0, 40, (4, 8)) for _ in range(count)]


LOSSES = [4 - 0.05 * i for i in range(30)]


def test_equal_runs_agree_and_the_page_opens_alone(tmp_path):
    for side in "AB":
        write_log(tmp_path / side, LOSSES)
        write_batches(tmp_path / side, batches())
    said = doctor(tmp_path)
    assert (said["outcome"], said["stage"], said["bug"]) == ("agree", None, False)
    page = (tmp_path / "out" / "msprobe_doctor.html").read_text()
    assert 'name="msprobe-report"' in page and "default-src 'none'" in page


def test_what_was_not_seen_is_not_claimed(tmp_path):
    for side in "AB":
        write_log(tmp_path / side, LOSSES)
    verdicts = {stage["stage"]: stage["verdict"] for stage in doctor(tmp_path)["stages"]}
    assert verdicts["data"] == verdicts["weights"] == verdicts["config"] == verdicts["lr0"] == "not_seen"
    assert verdicts["step1_loss"] == "pass"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: [*b[:2], b[3], b[2]], "at step 4: the order differs"),
        (lambda b: [b[0] + 1, *b[1:]], "1 more in B"),
        (lambda b: [np.roll(b[0], 1, axis=1), *b[1:]], "shifted by"),
        (lambda b: [b[0][::-1].copy(), *b[1:]], "the same samples in another order"),
    ],
)
def test_batches_say_how_they_differ(tmp_path, change, words):
    write_batches(tmp_path / "A", batches())
    write_batches(tmp_path / "B", change(batches()))
    said = doctor(tmp_path)
    assert said["stage"] == "data" and said["exact"]
    assert words in said["cause_text"]["en"]
    assert said["cause_text"]["zh"]


def test_the_next_run_is_a_command_with_the_script_of_the_run(tmp_path):
    for side, last in (("A", 1.0), ("B", 1.1)):
        write_log(tmp_path / side, [*LOSSES[:20], *(v * last for v in LOSSES[20:])])
        (tmp_path / side / "run.sh").write_text("python train.py --lr 0.01\n")
    said = doctor(tmp_path)
    assert (said["stage"], said["step"], said["bug"]) == ("training", 21, False)
    first, second = said["next"]["commands"]
    assert first.startswith(f"msprobe run --config {tmp_path / 'out' / 'record.json'} --dump-path ")
    assert "--step 0,1,19,20" in first
    assert json.loads((tmp_path / "out" / "record.json").read_text())["task"] == "tensor"
    assert second.endswith(f"-- bash {tmp_path / 'B' / 'run.sh'}")


def test_a_further_run_of_the_reference_is_the_band(tmp_path):
    random = np.random.default_rng(1)
    for name in ("A", "B", "again"):
        write_log(tmp_path / name, [v + 0.01 * random.uniform(-1, 1) for v in LOSSES])
    write_log(tmp_path / "high", [v + 0.1 * (i > 15) for i, v in enumerate(LOSSES)])
    verdicts = {s["stage"]: s["verdict"] for s in doctor(tmp_path, "--again", tmp_path / "again")["stages"]}
    assert verdicts["band"] == "pass"
    (tmp_path / "B" / "train.log").write_text((tmp_path / "high" / "train.log").read_text())
    verdicts = {s["stage"]: s["verdict"] for s in doctor(tmp_path, "--again", tmp_path / "again")["stages"]}
    assert verdicts["band"] == "differs"


def test_learning_rates_that_part_are_the_cause(tmp_path):
    write_log(tmp_path / "A", LOSSES)
    write_log(tmp_path / "B", [LOSSES[0], *(0.9 * v for v in LOSSES[1:])], rate=0.02)
    said = doctor(tmp_path)
    assert (said["stage"], said["cause"]) == ("optimizer", "learning rate of step 1")


def test_in_chinese(tmp_path):
    for side, factor in (("A", 1), ("B", 2)):
        write_log(tmp_path / side, [v * factor for v in LOSSES])
    done = msprobe("doctor", tmp_path / "A", tmp_path / "B", "-o", tmp_path / "out", language="zh_CN.UTF-8")
    assert "两次运行在" in done.stdout and "代价最小的下一步" in done.stdout
    assert "msprobe-report" in (tmp_path / "out" / "msprobe_doctor.html").read_text()  # in both languages


def test_bad_input_is_one_line_and_writes_nothing(tmp_path):
    (tmp_path / "A").mkdir()
    write_log(tmp_path / "B", LOSSES)
    for a in ("A", "missing"):
        for command in (("doctor", tmp_path / a, tmp_path / "B"), ("preflight", tmp_path / a)):
            done = msprobe(*command, "-o", tmp_path / "out")
            assert done.returncode == 3 and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "out").exists()


def test_broken_files_are_noted_and_the_rest_is_used(tmp_path):
    for side in "AB":
        write_log(tmp_path / side, LOSSES)
        (tmp_path / side / "init.pt").write_bytes(b"PK\x03\x04 cut off")
        (tmp_path / side / "model.yaml").write_text("a: [1, 2\n b: }")
    os.symlink(tmp_path, tmp_path / "A" / "loop")
    said = doctor(tmp_path)
    assert said["outcome"] == "agree"
    assert len(said["a"]["notes"]) == 2, said["a"]["notes"]


def test_logs_without_a_common_step_decide_nothing(tmp_path):
    write_log(tmp_path / "A", LOSSES)
    (tmp_path / "B").mkdir()
    (tmp_path / "B" / "x.log").write_text("iteration 500/ 900 | lm loss: 2.0 |\niteration 501/ 900 | lm loss: 2.0 |\n")
    assert doctor(tmp_path)["outcome"] == "undecided"


def test_preflight_sees_what_one_run_says(tmp_path):
    run = tmp_path / "A"
    write_log(run, [9.9, 4, float("nan")])
    tokens = batches(2)
    tokens[1][0, 0] = 50
    write_batches(run, tokens)
    (run / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 48, "hidden_size": 32}))
    done = msprobe("preflight", run, "-o", tmp_path / "out", "--json")
    assert done.returncode == 1, done.stderr
    found = {f["check"]: f["verdict"] for f in json.loads(done.stdout)["findings"]}
    assert found["data.input_ids"] == found["log.finite"] == "fail"
    assert found["log.first_loss"] == "warn"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["gradient_hook", "ms_norm_eps"])
def test_planted_faults_are_named_with_the_runs_that_it_asks_for(tmp_path, name):
    case = next(c for c in CASES if c.name == name)
    if case.framework == "mindspore" and not MINDSPORE.exists():
        pytest.skip("MindSpore's environment is not set up")
    result = Runner(tmp_path, MINDSPORE).diagnose(case)
    assert result.right_stage and result.right_cause, result
    assert result.runs <= 3

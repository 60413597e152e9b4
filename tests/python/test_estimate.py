"""msprobe estimate: the bytes it foretells are those that are written, within 10 %, for every level and task."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from graph_cases import find_command
from launch import HERE, PACKAGE_ROOT, run_python
from test_run_command import LOOP, run, write_config

CAPTURE = """
import dataclasses
import torch
from msprobe._attach.prices import _LEVELS, _TASKS, Kind
from msprobe.pytorch import PrecisionDebugger
from train_scenario import conv, llama, nested

torch.manual_seed(1)
torch.set_num_threads(1)


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    model = BertForSequenceClassification(config)
    tokens = torch.randint(0, 96, (2, 16))
    return model, lambda: model(input_ids=tokens, labels=torch.tensor([0, 1])).loss


def mixture():
    from transformers import MixtralConfig, MixtralForCausalLM
    config = MixtralConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                           num_key_value_heads=2, num_local_experts=4, attn_implementation="eager", use_cache=False)
    model = MixtralForCausalLM(config)
    tokens = torch.randint(0, 96, (2, 16))
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


debugger = PrecisionDebugger("config.json")
base = debugger._config
for make in (llama, conv, bert, mixture):
    model, loss_of = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for kind in [Kind(task, level) for task in _TASKS for level in _LEVELS if (task, level) != ("structure", "L1")]:
        debugger._apply(kind.config(base, f"dumps/{make.__name__}"))
        debugger.set_init_step(0)
        debugger.start(model)
        loss_of().backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
        optimizer.zero_grad()
"""
MODELS = ["llama", "conv", "bert", "mixture"]


def estimate(*options, cwd, program=()):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), str(PACKAGE_ROOT)])}
    command = [find_command(), "estimate", *map(str, options), *(["--", *map(str, program)] if program else [])]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def size_on_disk(directory: Path) -> tuple:
    """Bytes of the files, equal tensors that are linked counted once; number of files."""
    kept = ("dump.json", "stack.json", "construct.json")
    files = [path for path in directory.rglob("*") if path.is_file() and (path.name in kept or path.suffix == ".pt")]
    return sum({path.stat().st_ino: path.stat().st_size for path in files}.values()), len(files)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    directory = tmp_path_factory.mktemp("estimate")
    write_config(directory)
    (directory / "capture.py").write_text(CAPTURE)
    run_python(["capture.py"], cwd=directory)
    return directory / "dumps"


@pytest.mark.parametrize("model", MODELS)
def test_bytes_from_one_step(model, dumps):
    done = estimate("--from", dumps / model / "md5_mix" / "step0", "--json", cwd=dumps)
    assert done.returncode == 0, done.stderr
    kinds = {(kind["task"], kind["level"]): kind for kind in json.loads(done.stdout)["kinds"]}
    assert len(kinds) == 12
    measured = {}
    for (task, level), kind in kinds.items():
        directory = dumps / model / f"{task}_{level}" / "step0"
        if not directory.exists():
            assert (task, level) == ("structure", "L1")
            continue
        size, files = size_on_disk(directory)
        measured[task, level] = (kind["bytes"], size, kind["files"], files)
    wrong = {kind: figures for kind, figures in measured.items() if abs(figures[0] / figures[1] - 1) > 0.1}
    assert not wrong
    # JSON is formatted alike: what differs is the numbers of another step, and at level L1 the frames of module hooks.
    for (task, level), (guess, size, *_) in measured.items():
        if task != "tensor":
            assert abs(guess / size - 1) < (0.07 if level == "L1" else 0.02), (task, level, guess, size)
    assert all(abs(guess / files - 1) < 0.03 for *_, guess, files in measured.values()), measured


def test_the_ranks_of_a_run_that_is_larger(dumps):
    """Ranks and steps multiply what one rank takes; one of each place in the model is named."""
    options = ["--from", dumps / "conv" / "md5_mix" / "step0", "--rank_size", 16, "--tp", 2, "--pp", 2]
    answer = json.loads(estimate(*options, "--json", cwd=dumps).stdout)
    assert answer["run"]["ranks"] == 16 and answer["run"]["record"] == [0, 1, 8, 9]
    for kind, whole in zip(answer["kinds"], answer["run"]["kinds"]):
        assert (whole["task"], whole["level"]) == (kind["task"], kind["level"])
        assert whole["all"] == {"files": 16 * kind["files"], "bytes": 16 * kind["bytes"]}
        assert whole["one_of_each"] == {"files": 4 * kind["files"], "bytes": 4 * kind["bytes"]}
    text = estimate(*options, cwd=dumps).stdout
    assert "16 ranks (tp 2 x pp 2 x cp 1 x ep 1), 1 steps:" in text and '"rank": [0, 1, 8, 9]' in text
    every = estimate(*options[:4], "--tp", 4, "--pp", 4, cwd=dumps).stdout
    assert '"rank"' not in every, "without copies all ranks are needed"
    done = estimate("--from", dumps / "conv" / "md5_mix", "--tp", 2, cwd=dumps)
    assert done.returncode == 2 and "--rank_size" in done.stderr
    assert estimate(*options[:2], "--rank_size", 10, "--tp", 4, cwd=dumps).returncode == 2


def test_a_step_without_checksums_or_shapes(dumps):
    done = estimate("--from", dumps / "conv" / "statistics_L0", "--json", cwd=dumps)
    assert done.returncode == 0 and "no checksums" in done.stderr
    kinds = {(kind["task"], kind["level"]): kind["bytes"] for kind in json.loads(done.stdout)["kinds"]}
    assert {level for _, level in kinds} == {"L0"}
    size, _ = size_on_disk(dumps / "conv" / "tensor_L0" / "step0")
    assert abs(kinds["tensor", "L0"] / size - 1) < 0.1
    for path, word in ((dumps / "conv" / "structure_mix", "holds no shapes"), (dumps / "none", "none")):
        done = estimate("--from", path, cwd=dumps)
        assert done.returncode == 3 and done.stderr.count("\n") == 1 and word in done.stderr


@pytest.mark.deep
def test_a_command_is_run_timed_and_stopped(dumps, tmp_path):
    write_config(tmp_path, step=[5, 6])
    (tmp_path / "loop.py").write_text(LOOP.replace("range(3)", "range(40)") + "\nprint('not reached')\n")
    program = [sys.executable, "loop.py", "conv"]
    done = estimate(
        "-c", "config.json", "--task", "all", "--level", "all", "--steps", "1", "--json", cwd=tmp_path, program=program
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "not reached" not in done.stdout
    result = json.loads(done.stdout.splitlines()[-1])  # the script prints its losses above
    assert len(result["kinds"]) == 11 and result["steps"] == 2 and result["bare_seconds"] > 0
    recorded = run(program, "-c", "config.json", "--task", "tensor", "--dump-path", "real", "--step", "0", cwd=tmp_path)
    assert recorded.returncode == 0, recorded.stderr
    (real,) = [kind for kind in result["kinds"] if (kind["task"], kind["level"]) == ("tensor", "mix")]
    size, files = size_on_disk(tmp_path / "real")
    assert abs(real["bytes"] / size - 1) < 0.1 and real["files"] == files, (real, size, files)
    for kind in result["kinds"]:
        assert kind["seconds"] > 0 and kind["slowdown"] > 0 and kind["memory"] >= 0
    assert list((tmp_path / "dump").iterdir()) == []

    text = estimate("--from", dumps / "conv" / "md5_mix", cwd=tmp_path)
    assert text.returncode == 0 and "bytes/step" in text.stdout and "tensor      mix" in text.stdout
    short = estimate("-c", "config.json", cwd=tmp_path, program=[sys.executable, "-c", "import torch"])
    assert short.returncode == 3 and "too few steps" in short.stderr
    steps = [sys.executable, "loop.py", "conv"]
    for count, warning, timed in (
        (4, "after 4 steps: times need 5 steps, and 9 for medians of --steps", False),
        (5, "after 5 steps: times are medians of fewer steps than --steps asks for, which takes 9", True),
    ):
        (tmp_path / "loop.py").write_text(LOOP.replace("range(3)", f"range({count})"))
        few = estimate("-c", "config.json", cwd=tmp_path, program=steps)
        assert few.returncode == 0 and f"[msprobe] warning: the script ended {warning}\n" in few.stderr, few.stderr
        assert ("slowdown" in few.stdout) == ("without capture" in few.stdout) == timed, few.stdout
        rows = [line.split() for line in few.stdout.splitlines() if line.startswith(("task ", "statistics "))]
        assert len(rows) == 2 and ("-" not in rows[1]) and len(rows[1]) >= len(rows[0])
    both = estimate("--from", "dump", cwd=tmp_path, program=["true"])
    assert both.returncode == 2 and "not both" in both.stderr

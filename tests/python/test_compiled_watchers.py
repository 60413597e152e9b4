"""A training with compiled parts computes and compiles under each watcher what it does without: bits and counts are equal."""

import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIO = os.path.join(HERE, "compiled_scenario.py")
SHAPES = (
    *("eager", "whole", "in_place", "parts", "function", "crowded", "tensor_hook", "broken"),
    *("optimizer", "optimizer_and_model", "shapes", "autograd", "late"),
    *("fullgraph", "recomputed", "one_part", "train_step", "scaler", "branch", "dynamic"),
)
WATCHERS = ("all", "v2", "L0", "L1", "mix")
PARTS = ("monitor", "laws", "health", "all_ended", "L0_ended", "L1_ended", "mix_ended")


def run(directory, shape, backend, watcher):
    directory.mkdir()
    command = [sys.executable, SCENARIO, shape, backend, watcher, str(directory)]
    if watcher == "command":
        (directory / "laws.json").write_text(json.dumps({"targets": {}, "ops": ["norm"], "all_xy": True, "laws": True}))
        msprobe = os.path.join(os.path.dirname(sys.executable), "msprobe")
        config = ["--config", str(directory / "laws.json"), "--output", str(directory / "monitor")]
        command = [msprobe, "monitor", *config, "--", *command]
    environment = {**os.environ, "MONITOR_OUTPUT_DIR": str(directory / "monitor")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, env=environment)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout.split("OUT")[1].splitlines()[0]), done.stderr


def laws_of(directory):
    (path,) = (directory / "monitor").glob("*/laws.json")
    return json.loads(path.read_text())["laws"]


def test_a_compiled_model_under_the_monitor(tmp_path):
    plain, _ = run(tmp_path / "plain", "whole", "eager", "none")
    seen, told = run(tmp_path / "all", "whole", "eager", "all")
    assert seen == plain
    # What cannot be seen is said.
    assert "Net is compiled and left alone" in told
    (silent,) = [line for line in told.splitlines() if "never had a value" in line]
    assert "actv of 0:embed" in silent and "or only in compiled code, which is left alone: Net" in silent
    laws = laws_of(tmp_path / "all")
    assert laws["batch_norm"]["not_checked"].endswith("compiled code is left alone: Net")
    assert not any(law["broken"] for law in laws.values())
    assert laws["update"]["looks"] > 0 and not laws["update"]["partly_not_checked"]


@pytest.mark.deep
def test_the_command_monitor_on_a_compiled_model(tmp_path):
    plain, _ = run(tmp_path / "plain", "parts", "eager", "none")
    seen, told = run(tmp_path / "command", "parts", "eager", "command")
    assert seen == plain
    assert "is compiled and left alone" in told


@pytest.mark.deep
def test_a_break_of_the_graph_compiles_nothing_more(tmp_path):
    plain, _ = run(tmp_path / "plain", "broken", "eager", "none")
    for watcher in ("all", "L1"):
        assert run(tmp_path / watcher, "broken", "eager", watcher)[0] == plain, watcher


@pytest.mark.deep
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_watchers(tmp_path, shape, backend):
    plain, _ = run(tmp_path / "plain", shape, backend, "none")
    for watcher in (*WATCHERS, "command"):
        assert run(tmp_path / watcher, shape, backend, watcher)[0] == plain, watcher
    # A training without a fault: what is not seen breaks no law. The command finds no model that only compiled code calls.
    files = [*tmp_path.glob("*/monitor/*/laws.json")]
    assert files
    for file in files:
        assert not any(law["broken"] for law in json.loads(file.read_text())["laws"].values()), file


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["whole", "broken", "one_part", "optimizer_and_model", "recomputed"])
def test_each_watcher_alone_and_after_its_end(tmp_path, shape):
    plain, _ = run(tmp_path / "plain", shape, "eager", "none")
    for watcher in PARTS:
        assert run(tmp_path / watcher, shape, "eager", watcher)[0] == plain, watcher


@pytest.mark.deep
def test_laws_do_not_judge_what_a_compiled_optimizer_did(tmp_path):
    _, told = run(tmp_path / "laws", "scaler", "eager", "laws")
    assert "Adam.step is compiled and left alone: what its code computes is not seen, nor a step" in told.replace(
        "AdamW", "Adam"
    )
    laws = laws_of(tmp_path / "laws")
    assert not any(law["broken"] for law in laws.values())
    assert "steps in which compiled code may have done it are left out" in laws["loss_scale"]["partly_not_checked"]


COMPILERS = {
    "inductor": ["whole", "broken", "branch", "dynamic", "one_part", "optimizer_and_model"],
    "reduce-overhead": ["whole", "branch"],  # on a device without graphs
}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("backend", "shape"), [(backend, shape) for backend in COMPILERS for shape in COMPILERS[backend]]
)
def test_under_other_compilers(tmp_path, shape, backend):
    plain, _ = run(tmp_path / "plain", shape, backend, "none")
    assert plain[1]["graphs"] > 0
    for watcher in ("all", "mix"):
        assert run(tmp_path / watcher, shape, backend, watcher)[0] == plain, watcher


@pytest.mark.deep
@pytest.mark.parametrize(("shape", "backend"), [("whole", "inductor"), ("branch", "aot_eager"), ("one_part", "eager")])
def test_the_summary_names_what_was_compiled(tmp_path, shape, backend):
    run(tmp_path / "L0", shape, backend, "L0")
    files = [*(tmp_path / "L0" / "dump").glob("step*/rank*/dump_summary.json")]
    assert len(files) == 6
    name = "SelfAttention" if shape == "one_part" else "Net"
    for file in files:
        assert json.loads(file.read_text())["skipped"] == {f"a compiled region was left alone: {name}": 1}
        names = json.loads((file.parent / "dump.json").read_text())["data"].keys()
        # Parts outside of what was compiled are recorded, and of a compiled part what goes in and comes out. A break in a
        # loop leaves the loop to Python.
        assert ("Module.blocks.0.up.Linear.forward.0" in names) == (shape == "one_part")
        assert ("Module.blocks.1.SelfAttention.forward.0" in names) == (shape != "whole")
        assert "Module.blocks.1.qkv.Linear.forward.0" not in names

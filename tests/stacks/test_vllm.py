"""vLLM on a CPU against transformers: what is planted in the live engine is named by the stage "op" of `msprobe rollout`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MSPROBE = Path(sys.executable).with_name("msprobe")
PLACES = 64  # that a layer and the ends of the model have, times four layers

EXPECTED = {
    "clean": None,
    "clean_chunked": None,
    "rope": ("layers.0 rotary embedding", "rotary_base"),
    "q_rows": ("layers.2 q projection", "order"),
    "scale": ("layers.0 attention", "attention_scale"),
    "eps": ("layers.0 input norm", "norm_eps"),
    "bias": ("layers.1 q projection", "bias"),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_what_is_planted_in_the_engine_is_named(vllm_python, tmp_path, case):
    script = HERE / "vllm_rollout.py"
    done = subprocess.run([vllm_python, script, tmp_path, case], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert len(told) > 1
    for step, (scheduled, order) in enumerate(told):
        [dump] = (tmp_path / "rollout" / f"step{step}").glob("*/dump.json")
        rows = json.loads(dump.read_text())["schedule"]
        assert [row["request"] for row in rows] == order
        assert {row["request"]: row["tokens"] for row in rows} == scheduled
    if case == "clean_chunked":  # what the schedule is needed for: requests change places in the batch
        assert any(list(scheduled) != order for scheduled, order in told)
    done = subprocess.run(
        [MSPROBE, "rollout", tmp_path / "train", tmp_path / "rollout", "--json"], capture_output=True, text=True
    )
    [stage] = [s for s in json.loads(done.stdout)["stages"] if s["stage"] == "op"]
    assert int(stage["seen"].split()[0]) >= 0.95 * PLACES
    assert f"{len(told)} steps" in stage["seen"]
    if EXPECTED[case] is None:
        assert stage["verdict"] in ("agrees", "round_off"), stage
    else:
        assert (stage["verdict"], stage["place"]["module"], stage["kind"]) == ("cause", *EXPECTED[case])


def test_run_records_the_rows_without_a_line(vllm_python, tmp_path):
    config = {
        "task": "tensor",
        "level": "L0",
        "dump_path": str(tmp_path / "dump"),
        "rank": [],
        "step": [],
        "tensor": {},
    }
    (tmp_path / "run.json").write_text(json.dumps(config))
    msprobe = vllm_python.with_name("msprobe")
    command = [
        msprobe,
        "run",
        "--config",
        tmp_path / "run.json",
        "--",
        vllm_python,
        HERE / "vllm_rollout.py",
        tmp_path,
        "run",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    steps = sorted((tmp_path / "dump").glob("step*/*/dump.json"))
    records = [json.loads(step.read_text()) for step in steps]
    assert [[row["tokens"] for row in record["schedule"]] for record in records] == [[24, 11]] + 5 * [[1, 1]]
    assert any("LogitsProcessor" in name for name in records[-1]["data"])


def generated(python, root, *command, script=(), **environment):
    """(dump.json by directory below the dump, tokens, what was said) of vllm_generate.py, run behind `command`."""
    root.mkdir()
    config = {"task": "statistics", "level": "L0", "dump_path": str(root / "dump"), "rank": [], "step": []}
    (root / "run.json").write_text(json.dumps(config))
    own = {"TORCHDYNAMO_DISABLE": "1", "VLLM_LOGGING_LEVEL": "WARNING", "PYTHONPATH": str(HERE), **environment}
    done = subprocess.run(
        [*command, python, HERE / "vllm_generate.py", root, *script],
        capture_output=True,
        text=True,
        timeout=500,
        cwd=root,
        env={**os.environ, **own},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = {
        str(path.parent.relative_to(root / "dump")): json.loads(path.read_text())
        for path in (root / "dump").glob("**/dump.json")
    }
    return found, json.loads((root / "tokens.json").read_text()), done.stderr


def test_one_variable_reaches_the_engine_in_its_own_process(vllm_python, tmp_path):
    """By the entry point that vLLM loads; `msprobe run` writes the same to the same place, and no token changes."""
    nothing, tokens, _ = generated(vllm_python, tmp_path / "bare")
    assert nothing == {}
    asked, same, _ = generated(vllm_python, tmp_path / "asked", MSPROBE_CONFIG="run.json")
    run = (vllm_python.with_name("msprobe"), "run", "--config", "run.json", "--")
    ran, also, _ = generated(vllm_python, tmp_path / "ran", *run)
    assert tokens == same == also
    assert sorted(asked) == sorted(ran) == [f"rollout/step{step}/rank0" for step in range(6)]
    schedules = [[row["tokens"] for row in asked[f"rollout/step{step}/rank0"]["schedule"]] for step in range(6)]
    assert schedules == [[24], [1], [1], [11], [1], [1]]
    for place, dump in asked.items():
        assert list(dump["data"]) == list(ran[place]["data"])


def test_a_wrong_configuration_does_not_stop_the_engine(vllm_python, tmp_path):
    found, tokens, said = generated(vllm_python, tmp_path / "asked", MSPROBE_CONFIG="not_there.json")
    assert found == {} and len(tokens) == 2 and "not_there.json" in said


def test_an_engine_in_the_process_of_a_training_is_none_of_its_steps(vllm_python, tmp_path):
    run = (vllm_python.with_name("msprobe"), "run", "--config", "run.json", "--")
    found, _, said = generated(
        vllm_python, tmp_path / "beside", *run, script=("--train",), VLLM_ENABLE_V1_MULTIPROCESSING="0"
    )
    assert sorted(path.split("/")[0] for path in found) == ["step0", "step1"]
    for dump in found.values():
        assert any("Qwen2DecoderLayer.backward" in name for name in dump["data"])
        assert not any("qkv_proj" in name for name in dump["data"]) and "schedule" not in dump
    assert "the model that vllm calls is not recorded" in said

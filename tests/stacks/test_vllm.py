"""vLLM on a CPU against transformers: what is planted in the live engine is named by the stage "op" of `msprobe rollout`."""

import json
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

"""The tool does not change a training of MindSpore: losses, gradients, parameters and random numbers are equal bit for bit."""

import json
import pathlib

import pytest
from launch import run_mindspore

HERE = pathlib.Path(__file__).parent
# Entries a step must have at the least, so that a tool that records nothing does not pass.
LEAST = {"L0": 2, "L1": 6, "mix": 8}  # forward and backward together


def test_graph_mode(plain_path, mindspore_python):
    """Nothing is replaced there; the runtime of MindSpore saves the kernels."""

    def trained(dump):
        command = [mindspore_python, HERE / "train_networks.py", dump, "L2", "tensor", "residual", "stepped"]
        done = run_mindspore(command, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    bare, recorded = trained(""), trained(plain_path / "dump")
    assert bare == recorded and all(steps[0] != steps[1] for steps in bare.values())
    assert any((plain_path / "dump").rglob("*.npy"))


@pytest.mark.parametrize(
    "level, task", [("mix", "statistics"), ("L0", "statistics"), ("L1", "tensor"), ("mix", "tensor")]
)
def test_networks(tmp_path, mindspore_python, level, task):
    command = [mindspore_python, HERE / "train_networks.py", tmp_path / "dump", level, task]
    done = run_mindspore(command, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    names = {"convolutions", "residual", "compiled", "bfloat16", "dropout", "stepped"}
    lacking = {"bfloat16"} if result["release"].startswith(("2.7", "2.8")) else set()
    assert set(result["bare"]) == names - lacking
    for name, bare in result["bare"].items():
        assert bare == result["again"][name], f"{name} is not repeatable without the tool: this machine tells nothing"
        assert bare == result["recorded"][name], name
        assert bare[0] != bare[1], f"{name} does not learn"
    assert result["idle"], "nothing is replaced before start()"
    assert result["restored"], "functions are the same objects after stop()"
    dumps = sorted((tmp_path / "dump").glob("step*/rank/dump.json"))
    assert len(dumps) == 3 * len(result["bare"])
    for dump in dumps:
        entries = json.loads(dump.read_text())["data"]
        assert len(entries) >= LEAST[level], dump
        assert any(".backward" in name for name in entries), dump

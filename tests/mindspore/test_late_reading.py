"""Values are read late, and are those that the tensors had when they were recorded."""

import json
import pathlib

import numpy as np
import pytest
from launch import run_mindspore

SCRIPT = pathlib.Path(__file__).parent / "changing_scenario.py"


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_changed_tensors_show_what_they_were(tmp_path, mindspore_python, level):
    command = [mindspore_python, SCRIPT, tmp_path / "dump", level]
    done = run_mindspore(command, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said["ran"]) == 15 and said["changed"] != said["weights"][-1], said["ran"]
    directory = tmp_path / "dump" / "step0" / "rank" / "dump_tensor_data"

    def recorded(name):
        return np.load(directory / f"{name}.npy").tolist()

    for i, (output, weight) in enumerate(zip(said["outputs"], said["weights"])):
        assert recorded(f"Cell.twice.Twice.forward.{i}.output.0") == output, (i, said["ran"])
        assert recorded(f"Cell.twice.Twice.forward.{i}.parameters.weight") == weight, (i, said["ran"])
        if level == "mix":
            assert recorded(f"Functional.mul.{i}.forward.output.0") == output, (i, said["ran"])
            assert recorded(f"Functional.mul.{i}.forward.input.1") == weight, (i, said["ran"])
    # As the call found it: what the one before left.
    first = [0.0] * len(said["means"][0])
    for i, mean in enumerate([first, *said["means"][:-1]]):
        assert recorded(f"Cell.norm.BatchNorm1d.forward.{i}.parameters.moving_mean") == mean
    assert said["means"][0] != said["means"][1]

"""Causes of NaN that have nothing to do with each other are named as such, the earliest first."""

import json

import pytest
from graph_cases import run
from launch import HERE, run_python
from overflow_causes import CAUSES

# Runs whose answer is not right, and why.
KNOWN_MISSES = {"one_in_a_loop": "-inf has become zero in between, of which the next call makes another -inf"}


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    directory = tmp_path_factory.mktemp("causes")
    config = {"task": "statistics", "level": "mix", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "overflow_causes.py", directory], cwd=directory)
    return {name: directory / "dump" / f"step{i}" for i, name in enumerate(CAUSES)}


@pytest.mark.parametrize("name", [name for name in CAUSES if name not in KNOWN_MISSES])
def test_causes(name, steps, tmp_path):
    report = json.loads(run(["overflow_check", "-i", steps[name], "-o", tmp_path, "--json"]).stdout)
    assert [(op["rank"], op["op"]) for finding in report["first"] for op in finding["ops"]] == CAUSES[name]


def test_there_are_enough_of_them():
    assert len(CAUSES) >= 20 and len(KNOWN_MISSES) <= 1

"""What a communication only fills is no part of it, under every name that torch has."""

import json

import pytest
from graph_cases import run
from launch import HERE, run_python


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    directory = tmp_path_factory.mktemp("collectives")
    config = {"task": "statistics", "level": "L1", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "collectives_scenario.py", directory], cwd=directory)
    return directory / "dump"


def test_every_function_of_torch_was_called(dump):
    from collectives_scenario import functions

    called = {n for rank in (0, 1) for n in json.loads((dump / f"step0/rank{rank}/dump.json").read_text())["data"]}
    assert {f.__name__ for f in functions()} == {n.split(".")[1] for n in called if n.startswith("Distributed.")}


def test_what_a_call_fills_is_no_origin_of_nan(dump, tmp_path):
    report = json.loads(run(["overflow_check", "-i", dump / "step0", "-o", tmp_path, "--json"]).stdout)
    assert report["first"] == []


def test_what_a_call_fills_is_no_difference(dump, tmp_path):
    command = ["compare", "-tp", dump / "step0", "-gp", dump / "step1", "-o", tmp_path, "--json"]
    report = json.loads(run(command).stdout)
    assert report["first_divergence"]["creator"] is None

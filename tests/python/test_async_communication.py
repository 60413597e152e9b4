"""What an asynchronous communication brought is recorded as it was when it was waited for, by whatever kind of wait."""

import json
import math

import pytest
from launch import HERE, run_python

FILLED_UNSEEN = "unseen_data"  # written past all functions


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("async")
    config = {"task": "statistics", "level": "L1", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "async_scenario.py", directory], cwd=directory)
    return directory, [json.loads((directory / f"seen{rank}.json").read_text()) for rank in (0, 1)]


def tensors_in(item):
    if isinstance(item, list):
        return [tensor for part in item for tensor in tensors_in(part)]
    if not isinstance(item, dict):
        return []
    return [item] if "Max" in item else [tensor for part in item.values() for tensor in tensors_in(part)]


def output_of(directory, step, rank):
    data = json.loads((directory / "dump" / f"step{step}" / f"rank{rank}" / "dump.json").read_text())["data"]
    (op,) = [op for op in data if op.startswith("Distributed.") and op.endswith("0.forward") and ".isend." not in op]
    return data[op]["output"]


@pytest.mark.parametrize("rank", [0, 1])
def test_values_are_those_of_the_wait(runs, rank):
    """Every kind by every way, with the works of gloo and with works written in Python; the memory is used up behind it."""
    directory, seen = runs
    wrong = []
    for step, (name, expected, same) in enumerate(seen[rank]):
        assert same, f"{name}: the tool changed what the training saw"
        if name == FILLED_UNSEEN:
            continue
        output = output_of(directory, step, rank)
        for position, wanted in expected.items():
            shown = tensors_in(output[int(position)])
            equal = len(shown) == len(wanted) and all(
                math.isclose(item[key], number, rel_tol=1e-6, abs_tol=1e-7)
                for item, numbers in zip(shown, wanted)
                for key, number in zip(("Max", "Min", "Mean", "Norm"), numbers)
            )
            if not equal:
                wrong.append(name)
    assert not wrong
    assert len(seen[rank]) > 200


def test_memory_that_was_written_past_all_functions_is_not_shown(runs):
    directory, seen = runs
    for rank in (0, 1):
        step = [name for name, *_ in seen[rank]].index(FILLED_UNSEEN)
        assert output_of(directory, step, rank)[0] is None
        log = (directory / "dump" / f"step{step}" / f"rank{rank}" / "dump_error_info.log").read_text()
        assert "written before anybody was seen to wait for it" in log


def test_nothing_else_was_skipped(runs):
    directory, seen = runs
    for rank in (0, 1):
        for step, (name, *_) in enumerate(seen[rank]):
            log = directory / "dump" / f"step{step}" / f"rank{rank}" / "dump_error_info.log"
            assert log.exists() == (name == FILLED_UNSEEN), name

"""What an asynchronous communication brought is recorded as it was when it was waited for, by whatever kind of wait."""

import json
import math

import pytest
from capture_helpers import capture
from launch import HERE, run_python

FILLED_UNSEEN = "unseen_data"  # written past all functions
RAISED = "raised"  # blocks of communications


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


def output_of(directory, step, rank, number="0"):
    data = json.loads((directory / "dump" / f"step{step}" / f"rank{rank}" / "dump.json").read_text())["data"]
    ops = [op for op in data if op.startswith("Distributed.") and op.endswith(f".{number}.forward")]
    (op,) = [op for op in ops if ".isend." not in op and not (".all_gather" in op and len(ops) > 1)]
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
        for place, wanted in expected.items():
            number, _, position = place.rpartition(":")
            output = output_of(directory, step, rank, number or "0")
            if wanted is None:
                wrong += [name] if any(output) else []
                continue
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


def test_calls_of_a_block_that_raised_are_counted(runs):
    directory, seen = runs
    for rank in (0, 1):
        step = [name for name, *_ in seen[rank]].index(RAISED)
        log = (directory / "dump" / f"step{step}" / f"rank{rank}" / "dump_error_info.log").read_text()
        assert "nobody waited for an asynchronous communication in its step: 3 times" in log
        assert "an asynchronous communication failed: 2 times" in log
        assert len(log.splitlines()) == 2


def test_nothing_else_was_skipped(runs):
    directory, seen = runs
    for rank in (0, 1):
        for step, (name, *_) in enumerate(seen[rank]):
            log = directory / "dump" / f"step{step}" / f"rank{rank}" / "dump_error_info.log"
            assert log.exists() == (name in (FILLED_UNSEEN, RAISED)), name


def test_a_block_in_compiled_code_is_what_it_is_without_the_tool(tmp_path):
    early = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.FileStore("store", 1), rank=0, world_size=1)
def double(x):
    y = x * 2
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(y, async_op=True)
    manager.wait()
    return y + 1
"""
    body = """
debugger.start()
assert torch.compile(double, backend="eager")(torch.ones(3)).tolist() == [3.0] * 3
y = double(torch.ones(3))
debugger.stop()
debugger.step()
"""
    data = capture(tmp_path, body, early=early, level="L1").data(rank="rank0")
    assert data["Distributed.all_reduce.0.forward"]["output"][0]["Max"] == 2.0

"""Gradients of parameters are those that a process computes itself, before they are divided, reduced or sharded, whatever reduces them."""

import json
import math

import pytest
from launch import HERE, run_python

pytestmark = pytest.mark.deep

WHOLE = (
    "ddp ddp_views ddp_static ddp_allreduce_hook ddp_half_hook ddp_power_hook zero zero_views fsdp2 fsdp2_kept fsdp2_half "
    "fsdp1 fsdp1_grad_op fsdp1_no_shard"
).split()
# FSDP1 keeps all parameters of a module as one, and without use_orig_params the modules have none.
FLAT = ["fsdp1_flat"]
FSDP1 = [name for name in WHOLE if name.startswith("fsdp1")] + FLAT


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("moment")
    config = {"task": "statistics", "level": "mix", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "gradient_moment_scenario.py", directory], cwd=directory)
    local = [json.loads((directory / f"local{rank}.json").read_text()) for rank in (0, 1)]
    steps = {name: directory / "dump" / f"step{number}" for number, name in enumerate(local[0])}
    assert sorted(steps) == sorted(WHOLE + FLAT)
    return local, lambda name, rank: json.loads((steps[name] / f"rank{rank}" / "dump.json").read_text())["data"]


def gradients_of(data):
    """{"up.weight": item}, whatever the wrapper puts in front of the name and of the class."""
    return {
        f"{op.split('.parameters_grad')[0].split('.')[-2]}.{parameter}": items[0]
        for op, entry in data.items()
        if ".parameters_grad." in op
        for parameter, items in entry.items()
    }


@pytest.mark.parametrize("name", WHOLE)
def test_gradients_are_those_of_the_process(runs, name):
    local, data_of = runs
    shown = []
    for rank in (0, 1):
        shown.append(gradients_of(data_of(name, rank)))
        assert shown[rank].keys() == local[rank][name].keys()
        for parameter, numbers in local[rank][name].items():
            item = shown[rank][parameter]
            for key, number in zip(("Max", "Min", "Mean", "Norm"), numbers):
                assert math.isclose(item[key], number, rel_tol=1e-6, abs_tol=1e-7), (parameter, key)
    assert shown[0] != shown[1]


@pytest.mark.parametrize("name", FSDP1)
def test_flat_gradients_are_shown_where_they_are_reduced(runs, name):
    """FSDP1 divides by the number of processes before it sums."""
    local, data_of = runs
    for rank in (0, 1):
        data = data_of(name, rank)
        assert name not in FLAT or not gradients_of(data)
        reduced = [op for op in data if op.startswith("Distributed.reduce_scatter") or ".all_reduce." in op]
        assert len(reduced) == 1
        sent = [item for item in data[reduced[0]]["input_args"] if item and item["type"].endswith("Tensor")]
        whole = math.hypot(*(numbers[3] for numbers in local[rank][name].values()))
        assert math.isclose(max(item["Norm"] for item in sent), whole / 2, rel_tol=1e-6)

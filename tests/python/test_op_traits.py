"""The table of op traits (src/ops/op_traits.def) against the installed PyTorch: its in-place names, its functions that return
memory nobody wrote, its communications."""

import inspect
import json
import re
import types

import pytest
import torch
import torch.distributed
from conftest import REPO, run_python
from msprobe.pytorch.apis import hooked_apis

TEXT = (REPO / "src" / "ops" / "op_traits.def").read_text()


def read_ops():
    """{name: (arithmetic, traits)}"""
    found = {}
    for kind, traits, names in re.findall(r'^OPS\((\w+), ([\w |]+),\s*((?:"[^"]*"\s*)+)\)', TEXT, re.M):
        for name in "".join(re.findall(r'"([^"]*)"', names)).split():
            found[name] = (kind, set(traits.split(" | ")))
    return found


def read_collectives():
    """{name: (position, keyword)}"""
    rows = re.findall(r'^COLLECTIVE\((\w+), \w+, (-?\d+), "(\w*)", [\w |]+\)', TEXT, re.M)
    assert len(rows) == len(re.findall(r"^COLLECTIVE\(", TEXT, re.M))
    return {name: (int(position), keyword) for name, position, keyword in rows}


OPS, COLLECTIVES = read_ops(), read_collectives()
SPACES = (torch.Tensor, torch, torch.nn.functional)


def callables(wanted):
    return sorted({name for space in SPACES for name in dir(space) if wanted(name) and callable(getattr(space, name))})


def row(name):
    core = name.strip("_").lower()
    return OPS.get(core) or OPS.get(core.removeprefix("foreach_"))


def test_every_name_of_torch_that_works_in_place_is_in_the_table():
    names = callables(lambda name: name.endswith("_") and not name.endswith("__"))
    assert len(names) > 200
    assert [name for name in names if row(name) is None] == []


def test_operators_in_place_are_marked():
    operators = callables(lambda name: re.fullmatch(r"__i(?!nit|nvert|ndex|nt|ter)\w+__|__setitem__", name))
    assert "__iadd__" in operators
    assert [name for name in operators if row(name) is None or "kInPlace" not in row(name)[1]] == []


def test_every_function_that_returns_memory_as_it_is_is_marked():
    names = callables(lambda name: re.match(r"_?(new_)?empty(_|$)", name))
    assert {"empty", "empty_like", "empty_strided", "new_empty", "empty_permuted"} <= set(names)
    assert [name for name in names if row(name) is None or "kUndefined" not in row(name)[1]] == []


def communications():
    prefixes = ("all_", "reduce", "_all_gather", "_reduce_scatter", "broadcast", "gather", "scatter")
    exact = {"send", "recv", "isend", "irecv", "batch_isend_irecv", "barrier", "monitored_barrier"}
    for name, value in vars(torch.distributed).items():
        if type(value) is types.FunctionType and (name.startswith(prefixes) or name in exact):
            yield name, value


def test_every_communication_of_torch_is_in_the_table():
    recorded = {api.name for api in hooked_apis(torch) if api.prefix == "Distributed"}
    names = {name for name, _ in communications()} | recorded
    assert len(names) > 20
    assert names - set(COLLECTIVES) == set()


@pytest.mark.parametrize("name, function", list(communications()))
def test_the_argument_that_a_communication_fills_is_where_the_table_says(name, function):
    position, keyword = COLLECTIVES[name]
    parameters = list(inspect.signature(function).parameters)
    if position >= 0:
        assert parameters[position] == keyword
    else:
        assert [p for p in parameters if p.startswith("output")] == []


BUFFER = """
import json, os, sys
import torch, torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger

dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/store", rank=0, world_size=1)
json.dump({"task": "statistics", "level": "L1", "dump_path": sys.argv[1] + "/dump", "statistics": {}}, open(sys.argv[1] + "/c.json", "w"))
debugger = PrecisionDebugger(config_path=sys.argv[1] + "/c.json")
debugger.start()
value = torch.ones(2)
dist.all_gather_into_tensor(torch.full((2,), torch.nan), value)
dist.all_gather_into_tensor(output_tensor=torch.full((2,), torch.nan), input_tensor=value)
for name in ("all_gather_single", "reduce_scatter_single"):
    if hasattr(dist, name):
        getattr(dist, name)(torch.full((2,), torch.nan), value)
debugger.stop()
debugger.step()
"""


def test_what_a_communication_fills_is_not_recorded_as_its_input(tmp_path):
    """At a position or under its name; the old tool records the latter, which is whatever the memory held."""
    run_python(["-c", BUFFER, str(tmp_path)])
    (path,) = tmp_path.glob("dump/step0/rank*/dump.json")
    ops = {name: op for name, op in json.loads(path.read_text())["data"].items() if name.startswith("Distributed.")}
    assert len(ops) == 2 + sum(hasattr(torch.distributed, n) for n in ("all_gather_single", "reduce_scatter_single"))
    for name, op in ops.items():
        if op["input_args"]:
            assert op["input_args"][0] is None and op["input_args"][1]["Max"] == 1.0, name
        else:
            assert op["input_kwargs"]["output_tensor"] is None, name
            assert op["input_kwargs"]["input_tensor"]["Max"] == 1.0, name
        assert op["output"][0]["Max"] == 1.0, name

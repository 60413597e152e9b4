"""The items of dump.json: one call of each kind of value, its statistics, and the text of the files."""

import json
import math

import pytest
from capture_helpers import capture

# ---- the values of one call each, at level L1 with nothing filtered

ZOO = """
import numpy
x = torch.arange(6, dtype=torch.float32).reshape(2, 3) - 2.5
i = torch.tensor([[1, -2], [3, 4]])
w = torch.ones(3, requires_grad=True)
unread = torch.zeros(2, 3)
debugger.start()
torch.add(x, 2, alpha=3)
F.pad(x, (1, 1), mode="constant", value=0.5)
torch.cat([x, x], dim=0)
unread[0, 1:3] = 0.0
unread[..., None] = 1.0
torch.sum(x, dim=1, dtype=torch.float64)
x.to("cpu", torch.float64)
x.to(device="cpu", dtype=torch.float16)
torch.clone(x, memory_format=torch.contiguous_format)
torch.where(x > 0, x, torch.zeros(()))
torch.abs(torch.tensor([3 + 4j, 1j]))
torch.sum(torch.empty(0))
torch.add(i, 1)
torch.add(i.to(torch.uint8), 1)
torch.max(x, dim=0)
torch.split(x, 1)
F.cross_entropy(x, torch.tensor([0, 1]), weight=None, reduction="sum")
torch.mul(torch.tensor([1.0, float("nan")]), 2)
torch.mul(torch.tensor([1.0, float("inf"), -float("inf")]), 2)
torch.mul(x.bfloat16(), 3)
torch.mul(x.double(), 3)
torch.mul(torch.tensor(2.0), torch.tensor(3))
x.expand(torch.Size([1, 2, 3]))
x.reshape(3, 2)
x.reshape((3, 2))
torch.mul(x, numpy.float32(2.5))
torch.equal(x, x)
torch.bernoulli(x.abs() * 0, generator=torch.Generator())
(w * 2).sum().backward()
debugger.stop()
debugger.step()
"""

X = "float32[2,3] 2.5 -2.5"

# Tensors are written "dtype[shape] Max Min", numbers and texts as they are, other items as their JSON.
ZOO_EXPECTED = {
    "Torch.add.0.forward": ([X, 2], {"alpha": 3}, ["float32[2,3] 8.5 3.5"]),
    "Functional.pad.0.forward": ([X, [1, 1]], {"mode": "constant", "value": 0.5}, ["float32[2,5] 2.5 -2.5"]),
    "Torch.cat.0.forward": ([[X, X]], {"dim": 0}, ["float32[4,3] 2.5 -2.5"]),
    "Tensor.__setitem__.0.forward": (
        ["float32[2,3] 0.0 0.0", [0, {"type": "slice", "value": [1, 3, None]}], 0.0],
        {},
        [None],
    ),
    "Tensor.__setitem__.1.forward": (
        ["float32[2,3] 0.0 0.0", [{"type": "ellipsis", "value": "..."}, None], 1.0],
        {},
        [None],
    ),
    "Torch.sum.0.forward": (
        [X],
        {"dim": 1, "dtype": {"type": "torch.dtype", "value": "torch.float64"}},
        ["float64[2] 4.5 -4.5"],
    ),
    "Tensor.to.0.forward": (
        [X, "cpu", {"type": "torch.dtype", "value": "torch.float64"}],
        {},
        ["float64[2,3] 2.5 -2.5"],
    ),
    "Tensor.to.1.forward": (
        [X],
        {
            "device": {"type": "torch.device", "value": "cpu"},
            "dtype": {"type": "torch.dtype", "value": "torch.float16"},
        },
        ["float16[2,3] 2.5 -2.5"],
    ),
    "Torch.clone.0.forward": (
        [X],
        {"memory_format": {"type": "torch.memory_format", "format": "contiguous_format"}},
        [X],
    ),
    "Tensor.__gt__.0.forward": ([X, 0], {}, ["bool[2,3] True False"]),
    "Torch.where.0.forward": (["bool[2,3] True False", X, "float32[] 0.0 0.0"], {}, ["float32[2,3] 2.5 0.0"]),
    "Torch.abs.0.forward": (["complex64[2] 5.0 1.0"], {}, ["float32[2] 5.0 1.0"]),
    "Torch.sum.1.forward": (["float32[0] None None"], {}, ["float32[] 0.0 0.0"]),
    "Torch.add.1.forward": (["int64[2,2] 4 -2", 1], {}, ["int64[2,2] 5 -1"]),
    "Tensor.to.2.forward": (
        ["int64[2,2] 4 -2", {"type": "torch.dtype", "value": "torch.uint8"}],
        {},
        ["uint8[2,2] 254 1"],
    ),
    "Torch.add.2.forward": (["uint8[2,2] 254 1", 1], {}, ["uint8[2,2] 255 2"]),
    "Torch.max.0.forward": ([X], {"dim": 0}, ["float32[3] 2.5 0.5", "int64[3] 1 1"]),
    "Torch.split.0.forward": ([X, 1], {}, ["float32[1,3] -0.5 -2.5", "float32[1,3] 2.5 0.5"]),
    "Functional.cross_entropy.0.forward": (
        [X, "int64[2] 1 0"],
        {"weight": None, "reduction": "sum"},
        ["float32[] 3.815211772918701 3.815211772918701"],
    ),
    "Torch.mul.0.forward": (["float32[2] nan nan", 2], {}, ["float32[2] nan nan"]),
    "Torch.mul.1.forward": (["float32[3] inf -inf", 2], {}, ["float32[3] inf -inf"]),
    "Tensor.bfloat16.0.forward": ([X], {}, ["bfloat16[2,3] 2.5 -2.5"]),
    "Torch.mul.2.forward": (["bfloat16[2,3] 2.5 -2.5", 3], {}, ["bfloat16[2,3] 7.5 -7.5"]),
    "Tensor.double.0.forward": ([X], {}, ["float64[2,3] 2.5 -2.5"]),
    "Torch.mul.3.forward": (["float64[2,3] 2.5 -2.5", 3], {}, ["float64[2,3] 7.5 -7.5"]),
    "Torch.mul.4.forward": (["float32[] 2.0 2.0", "int64[] 3 3"], {}, ["float32[] 6.0 6.0"]),
    "Tensor.expand.0.forward": ([X, {"type": "torch.Size", "value": [1, 2, 3]}], {}, ["float32[1,2,3] 2.5 -2.5"]),
    "Tensor.reshape.0.forward": ([X, 3, 2], {}, ["float32[3,2] 2.5 -2.5"]),
    "Tensor.reshape.1.forward": ([X, [3, 2]], {}, ["float32[3,2] 2.5 -2.5"]),
    "Torch.mul.5.forward": ([X, {"type": "float32", "value": 2.5}], {}, ["float32[2,3] 6.25 -6.25"]),
    "Torch.equal.0.forward": ([X, X], {}, [True]),
    "Tensor.abs.0.forward": ([X], {}, ["float32[2,3] 2.5 0.5"]),
    "Tensor.__mul__.0.forward": (["float32[2,3] 2.5 0.5", 0], {}, ["float32[2,3] 0.0 0.0"]),
    "Torch.bernoulli.0.forward": (
        ["float32[2,3] 0.0 0.0"],
        {"generator": {"type": "torch.Generator", "value": "cpu"}},
        ["float32[2,3] 0.0 0.0"],
    ),
    "Tensor.__mul__.1.forward": (["float32[3] 1.0 1.0", 2], {}, ["float32[3] 2.0 2.0"]),
    "Tensor.sum.0.forward": (["float32[3] 2.0 2.0"], {}, ["float32[] 6.0 6.0"]),
    "Tensor.sum.0.backward": (["float32[] 1.0 1.0"], ["float32[3] 1.0 1.0"]),
    "Tensor.__mul__.1.backward": (["float32[3] 1.0 1.0"], ["float32[3] 2.0 2.0", None]),
}


def brief(item):
    """An item as ZOO_EXPECTED spells it."""
    if isinstance(item, list):
        return [brief(part) for part in item]
    if not isinstance(item, dict):
        return item
    if item.get("type") == "torch.Tensor":
        shape = ",".join(map(str, item["shape"]))
        return f"{item['dtype'].replace('torch.', '')}[{shape}] {item['Max']} {item['Min']}"
    if item.get("type") in ("int", "float", "bool", "str"):
        assert type(item["value"]).__name__ == item["type"]
        return item["value"]
    if "type" in item:
        return item
    return {key: brief(value) for key, value in item.items()}


def tensors_in(item):
    if isinstance(item, dict) and item.get("type") == "torch.Tensor":
        yield item
    elif isinstance(item, (dict, list)):
        for part in item.values() if isinstance(item, dict) else item:
            yield from tensors_in(part)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("zoo"), ZOO, risk_level="ALL", fresh=True)


def test_calls_are_listed_in_the_order_they_complete(zoo):
    assert zoo.names() == list(ZOO_EXPECTED)


@pytest.mark.parametrize("name", ZOO_EXPECTED)
def test_values_of_a_call(zoo, name):
    entry, expected = zoo.data()[name], ZOO_EXPECTED[name]
    keys = ["input", "output"] if name.endswith("backward") else ["input_args", "input_kwargs", "output"]
    assert list(entry) == keys
    for key, value in zip(keys, expected):
        assert brief(entry[key]) == value, key


def test_a_tensor_has_these_keys_in_this_order(zoo):
    order = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad"]
    found = list(tensors_in(zoo.data()))
    assert len(found) > 60
    assert all(list(item)[:8] == order for item in found)
    assert sum(list(item) == order for item in found) == len(found) - 4  # the others are not finite


def test_statistics_of_tensors(zoo):
    data = zoo.data()
    add = data["Torch.add.0.forward"]
    x = add["input_args"][0]
    assert (x["Max"], x["Min"], x["Mean"]) == (2.5, -2.5, 0.0)
    assert math.isclose(x["Norm"], math.sqrt(17.5), rel_tol=1e-6)
    assert math.isclose(add["output"][0]["Norm"], math.sqrt(6 * 36 + 17.5), rel_tol=1e-6)
    assert type(data["Torch.add.1.forward"]["input_args"][0]["Max"]) is int
    # The earlier tool leaves these two empty for integers and double precision.
    ints = data["Torch.add.1.forward"]["input_args"][0]
    assert (ints["Mean"], round(ints["Norm"], 6)) == (1.5, round(math.sqrt(30), 6))
    doubles = data["Torch.mul.3.forward"]["output"][0]
    assert (doubles["Mean"], round(doubles["Norm"], 6)) == (0.0, round(3 * math.sqrt(17.5), 6))
    booleans = data["Tensor.__gt__.0.forward"]["output"][0]
    assert [booleans[key] for key in ("Max", "Min", "Mean", "Norm")] == [True, False, None, None]
    assert data["Torch.abs.0.forward"]["input_args"][0]["Mean"] == 3.0
    empty = data["Torch.sum.1.forward"]["input_args"][0]
    assert [empty[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    scalar = data["Torch.mul.4.forward"]["input_args"][1]
    assert [scalar[key] for key in ("Max", "Min", "Mean", "Norm")] == [3, 3, 3, 3]


def test_nan_and_infinity(zoo):
    data = zoo.data()
    nan = data["Torch.mul.0.forward"]["output"][0]
    assert all(math.isnan(nan[key]) for key in ("Max", "Min", "Mean", "Norm"))
    inf = data["Torch.mul.1.forward"]["output"][0]
    assert (inf["Max"], inf["Min"], inf["Norm"]) == (math.inf, -math.inf, math.inf)
    assert math.isnan(inf["Mean"])
    assert (nan["nan_count"], "inf_count" in nan) == (1, False)
    assert (inf["inf_count"], "nan_count" in inf) == (2, False)
    text = (zoo.directory() / "dump.json").read_text()
    assert "NaN" in text and "-Infinity" in text and ": nan" not in text


def test_what_a_parameter_is_over_ranks(tmp_path):
    """The attributes that Megatron gives its parameters."""
    body = """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
net[0].weight.tensor_model_parallel, net[0].weight.partition_dim = True, 1
net[0].bias.tensor_model_parallel, net[0].bias.partition_dim = False, -1
net[1].weight.tensor_model_parallel, net[1].weight.partition_dim, net[1].weight.allreduce = True, 0, False
net[1].bias.sequence_parallel = True
debugger.start(model=net)
net(torch.ones(2, 4)).sum().backward()
debugger.stop()
"""
    data = capture(tmp_path, body, level="L0").data()
    known = {"tensor_model_parallel", "partition_dim", "sequence_parallel", "allreduce"}
    told = {
        f"{at}.{name}": {key: value for key, value in item.items() if key in known}
        for at in (0, 1)
        for name, item in data[f"Module.{at}.Linear.forward.0"]["parameters"].items()
    }
    assert told == {
        "0.weight": {"tensor_model_parallel": True, "partition_dim": 1},
        "0.bias": {},
        "1.weight": {"tensor_model_parallel": True, "partition_dim": 0, "allreduce": False},
        "1.bias": {"sequence_parallel": True},
    }


def test_requires_grad(zoo):
    data = zoo.data()
    assert data["Tensor.__mul__.1.forward"]["input_args"][0]["requires_grad"] is True
    assert data["Tensor.__mul__.1.forward"]["output"][0]["requires_grad"] is True
    assert data["Torch.add.0.forward"]["output"][0]["requires_grad"] is False


def test_envelope_and_layout_of_the_text(zoo):
    text = (zoo.directory() / "dump.json").read_text()
    assert text.startswith(
        '{\n "task": "statistics",\n "level": "L1",\n "framework": "pytorch",\n "dump_data_dir": null,\n "data": {\n'
        '  "Torch.add.0.forward": {\n   "input_args": [\n    {\n     "type": "torch.Tensor",\n'
        '     "dtype": "torch.float32",\n     "shape": [\n      2,\n      3\n     ],\n     "Max": 2.5,\n'
    )
    assert text == json.dumps(json.loads(text), indent=1)


def test_level_l1_has_no_construct(zoo):
    assert zoo.construct() == {}


def test_stack_of_a_call(zoo):
    stacks = zoo.json("stack.json")
    assert list(stacks) == [str(number) for number in range(len(stacks))]
    names = [name for entry in stacks.values() for name in entry[0]]
    assert sorted(names) == sorted(name for name in zoo.names() if name.endswith(".forward"))
    script = zoo.root.parent / "script.py"
    lines = script.read_text().split("\n")
    for number, line in enumerate(lines, 1):
        if line == "torch.where(x > 0, x, torch.zeros(()))":
            frame = f"File {script}, line {number}, in <module>, \n {line}"
            assert [["Tensor.__gt__.0.forward", "Torch.where.0.forward"], [frame]] in list(stacks.values())


def test_permissions(zoo):
    assert zoo.root.stat().st_mode & 0o777 == 0o750
    assert zoo.directory().stat().st_mode & 0o777 == 0o750
    for name in ("dump.json", "stack.json", "construct.json"):
        assert (zoo.directory() / name).stat().st_mode & 0o777 == 0o640
    names = ["construct.json", "dump.json", "dump_summary.json", "stack.json"]
    assert sorted(path.name for path in zoo.directory().iterdir()) == names

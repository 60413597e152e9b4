"""PrecisionDebugger.save at level debug: debug.json, its values, gradients, counters and steps."""

import json

import pytest
from capture_helpers import capture, capture_each

BODY = """
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
w = torch.ones(3, requires_grad=True)
frozen = torch.ones(2)
for step in range(2):
    y = x * w
    z = {"k1": frozen, "k2": [y, 3, [y + 1, 1, "text"]], "k3": (True, 2.5)}
    debugger.save(x, "x")
    debugger.save(x, "x")
    debugger.save(z, "dv")
    debugger.save(y, "only_forward", save_backward=False)
    (y.sum() + z["k2"][2][0].sum()).backward()
    debugger.step()
"""


def debug_json(dump, step=0):
    (path,) = (dump.root / f"step{step}").glob("*/debug.json")
    return json.loads(path.read_text())


def shape_of(value):
    """The structure: what each item is, without its numbers."""
    if isinstance(value, dict) and "dtype" in value:
        return sorted(key for key in value)
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else value


CONFIGS = [
    {"level": "debug", "section": {"summary_mode": mode}, "step": step}
    for mode, step in (("statistics", []), ("md5", [1]), ("xor", [1]))
]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory, old_python):
    ours = capture_each(tmp_path_factory.mktemp("ours"), BODY, CONFIGS)
    theirs = capture_each(tmp_path_factory.mktemp("theirs"), BODY, CONFIGS, python=old_python)
    return list(zip(ours, theirs))


def test_values_and_gradients_are_those_of_the_old_tool(dumps):
    for number, step in ((0, 0), (0, 1), (1, 1)):
        mine, theirs = (debug_json(dump, step) for dump in dumps[number])
        assert {key: mine[key] for key in ("task", "level", "framework")} == {
            key: theirs[key] for key in ("task", "level", "framework")
        }
        assert sorted(mine["data"]) == sorted(theirs["data"])
        for name, entry in mine["data"].items():
            assert shape_of(entry) == shape_of(theirs["data"][name]), name
        assert mine["data"]["dv_grad.0.debug"]["k2"][2][0]["Max"] == 1.0
        assert mine["data"]["x_grad.0.debug"]["Norm"] == pytest.approx(theirs["data"]["x_grad.0.debug"]["Norm"])
        assert "only_forward_grad.0.debug" not in mine["data"]
        assert list(mine["data"])[:3] == ["x.0.debug", "x.1.debug", "dv.0.debug"]


def test_md5_is_that_of_the_old_tool(dumps):
    mine, theirs = (debug_json(dump, 1)["data"] for dump in dumps[1])
    for name in ("x.0.debug", "x_grad.1.debug", "only_forward.0.debug"):
        assert mine[name]["md5"] == theirs[name]["md5"]


def test_xor_is_that_of_the_old_tool(dumps):
    mine, theirs = (debug_json(dump, 1)["data"] for dump in dumps[2])
    for name in ("x.0.debug", "x_grad.1.debug", "only_forward.0.debug"):
        assert mine[name] == theirs[name]


def test_steps_that_are_not_asked_for_and_files_of_other_levels(dumps):
    for dump, _ in dumps[:2]:
        assert not list(dump.root.glob("*/*/dump.json")) and not list(dump.root.glob("*/*/construct.json"))
    assert sorted(p.name for p in dumps[1][0].root.iterdir()) == ["step1"]
    assert dumps[0][0].script.stderr.count("step 0: captured 7 values, ") == 1


ODD = """
import dataclasses, collections, enum
import numpy as np
@dataclasses.dataclass
class Data:
    a: object
    b: object = None
Point = collections.namedtuple("Point", "p q")
x = torch.ones(2, requires_grad=True)
odd = {"complex": 1 + 2j, "array": np.arange(4.0), "none": None, 3: "key", (1, 2): 1, "set": {1}, "object": object(),
       "data": Data(x * 2, Point(x * 3, 1)), "size": torch.Size([1]), "dtype": torch.float16}
debugger.save(odd, "odd")
debugger.save(None, "none"); debugger.save(1 + 1j, "complex"); debugger.save(np.float32(2.5), "scalar")
debugger.save(odd["data"], 'quote"d')
(odd["data"].a.sum() + odd["data"].b.p.sum()).backward()
loop = []; loop.append(loop)
debugger.save(loop, "loop")
with torch.no_grad(): debugger.save(x, "leaf")
unused = torch.ones(1, requires_grad=True)
debugger.save(unused, "unused")
debugger.start(); F.relu(x); debugger.stop()  # no effect at this level
import io, warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    torch.save(x, io.BytesIO())
before = torch.random.get_rng_state()
debugger.save(x, "x")
assert torch.equal(before, torch.random.get_rng_state())
raise SystemExit
"""


def test_everything_can_be_saved(tmp_path):
    """Also without step(): the end of the process writes what is there."""
    data = debug_json(capture(tmp_path, ODD, level="debug"))["data"]
    odd = data["odd.0.debug"]
    assert odd["array"]["shape"] == [4] and odd["array"]["Max"] == 3.0
    assert odd["3"] == {"type": "str", "value": "key"} and odd["(1, 2)"]["value"] == 1 and odd["none"] is None
    assert odd["data"]["a"]["Max"] == 2.0 and odd["data"]["b"]["p"]["Max"] == 3.0
    gradients = data["odd_grad.0.debug"]
    assert gradients["data"]["a"]["Max"] == 1.0 and gradients["data"]["b"] == {**gradients["data"]["b"], "q": None}
    assert gradients["array"] is None and list(gradients) == list(odd)
    assert data["none.0.debug"] is None and data["scalar.0.debug"] == {"type": "float32", "value": 2.5}
    assert data['quote"d_grad.0.debug']["a"]["Max"] == 1.0
    assert data["unused_grad.0.debug"] is None
    assert "Functional.relu.0.forward" not in data and "leaf_grad.0.debug" in data


KILLED = """
import os, signal
x = torch.ones(4)
for i in range(3000): debugger.save(x * i, "x")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_a_complete_file(tmp_path):
    dump = capture(tmp_path, KILLED, level="debug", check=False)
    names = list(debug_json(dump)["data"])
    assert names == [f"x.{i}.debug" for i in range(len(names))] and len(names) >= 1000


@pytest.fixture(scope="module")
def tensor_dumps(tmp_path_factory, old_python):
    config = [{"level": "debug", "task": "tensor", "section": {"summary_mode": "md5"}}]
    (ours,) = capture_each(tmp_path_factory.mktemp("ours"), BODY, config)
    (theirs,) = capture_each(tmp_path_factory.mktemp("theirs"), BODY, config, python=old_python)
    return ours, theirs


def test_files_of_tensors_are_those_of_the_old_tool(tensor_dumps):
    import torch

    mine, theirs = (
        {path.name: path for path in dump.root.glob("step1/*/dump_tensor_data/*.pt")} for dump in tensor_dumps
    )
    assert sorted(mine) == sorted(theirs) and "dv_grad.0.debug.k2.2.0.pt" in mine and "x.1.debug.pt" in mine
    for name in mine:
        first, second = (torch.load(files[name], weights_only=True) for files in (mine, theirs))
        assert torch.equal(first, second), name
    entries = [debug_json(dump, 1)["data"] for dump in tensor_dumps]
    assert {name: shape_of(entry) for name, entry in entries[0].items()} == {
        name: shape_of(entry) for name, entry in entries[1].items()
    }
    assert entries[0]["dv.0.debug"]["k2"][0]["data_name"] == "dv.0.debug.k2.0.pt"


SAME_BITS = """
import pathlib
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 8)
    hidden = net[0](x)
    debugger.save({"hidden": hidden, "all": list(net.parameters())}, "values")
    loss = net[2](net[1](hidden)).sum() + hidden.square().mean()
    debugger.save(loss, "loss")
    loss.backward()
    debugger.step()
    optimizer.step(); optimizer.zero_grad()
    assert all(not p._backward_hooks for p in net.parameters())
torch.save([p.detach() for p in net.parameters()] + [torch.get_rng_state()], "end.pt")
"""


def test_the_training_is_the_same_with_and_without(tmp_path):
    import torch

    dumps = capture_each(tmp_path, SAME_BITS, [{"level": "debug"}, {"level": "debug", "step": [9]}])
    ends = [torch.load(dump.root.parent / "end.pt", weights_only=True) for dump in dumps]
    assert all(torch.equal(a, b) for a, b in zip(*ends)) and not dumps[1].root.exists()
    assert debug_json(dumps[0], 2)["data"]["values_grad.0.debug"]["all"][0]["Norm"] > 0

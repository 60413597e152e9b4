"""Names, numbers, order and parents of entries, which entries there are, and what happens when things go wrong."""

import pytest
from capture_helpers import capture
from launch import PACKAGE_ROOT

# ---- modules and interfaces together, at level mix

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_1 = nn.Linear(8, 4)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        x = self.linear_1(x)
        x = self.block(x)
        return self.block[1](x)

net = Net()
x = torch.randn(10, 8)
"""

NET_STEP = """
debugger.start(model=net)
net(x).sum().backward()
debugger.stop()
debugger.step()
"""

NET_NAMES = [
    "Functional.linear.0.forward",
    "Module.linear_1.Linear.forward.0",
    "Functional.linear.1.forward",
    "Module.block.0.Linear.forward.0",
    "Functional.relu.0.forward",
    "Module.block.1.ReLU.forward.0",
    "Module.block.Sequential.forward.0",
    "Functional.relu.1.forward",
    "Module.block.1.ReLU.forward.1",
    "Tensor.sum.0.forward",
    "Tensor.sum.0.backward",
    "Functional.relu.1.backward",
    "Module.block.1.ReLU.backward.1",
    "Functional.relu.0.backward",
    "Module.block.1.ReLU.backward.0",
    "Functional.linear.1.backward",
    "Module.block.0.Linear.parameters_grad.0",
    "Module.block.0.Linear.backward.0",
    "Module.block.Sequential.backward.0",
    "Module.linear_1.Linear.backward.0",
    "Functional.linear.0.backward",
    "Module.linear_1.Linear.parameters_grad.0",
]

NET_CONSTRUCT = {
    "Module.linear_1.Linear.forward.0": None,
    "Functional.linear.0.forward": "Module.linear_1.Linear.forward.0",
    "Module.block.Sequential.forward.0": None,
    "Module.block.0.Linear.forward.0": "Module.block.Sequential.forward.0",
    "Functional.linear.1.forward": "Module.block.0.Linear.forward.0",
    "Module.block.1.ReLU.forward.0": "Module.block.Sequential.forward.0",
    "Functional.relu.0.forward": "Module.block.1.ReLU.forward.0",
    "Module.block.1.ReLU.forward.1": None,
    "Functional.relu.1.forward": "Module.block.1.ReLU.forward.1",
    "Tensor.sum.0.forward": None,
    "Tensor.sum.0.backward": None,
    "Module.block.1.ReLU.backward.1": None,
    "Functional.relu.1.backward": "Module.block.1.ReLU.backward.1",
    "Module.block.Sequential.backward.0": None,
    "Module.block.1.ReLU.backward.0": "Module.block.Sequential.backward.0",
    "Functional.relu.0.backward": "Module.block.1.ReLU.backward.0",
    "Module.block.0.Linear.backward.0": "Module.block.Sequential.backward.0",
    "Functional.linear.1.backward": "Module.block.0.Linear.backward.0",
    "Module.linear_1.Linear.backward.0": None,
    "Functional.linear.0.backward": None,
}


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("mix"), NET + NET_STEP + NET_STEP, level="mix")


@pytest.mark.parametrize("step", [0, 1])
def test_modules_and_interfaces_are_numbered_anew_in_each_step(mix, step):
    assert mix.names(step) == NET_NAMES


def test_construct_names_the_parent_of_each(mix):
    assert mix.construct() == NET_CONSTRUCT


def test_a_module_forward_has_its_parameters(mix):
    entry = mix.data()["Module.linear_1.Linear.forward.0"]
    assert list(entry) == ["input_args", "input_kwargs", "output", "parameters"]
    assert {name: item["shape"] for name, item in entry["parameters"].items()} == {"weight": [4, 8], "bias": [4]}
    assert entry["parameters"]["weight"]["requires_grad"] is True
    assert mix.data()["Module.block.1.ReLU.forward.0"]["parameters"] == {}


def shapes(items):
    return [item and item["shape"] for item in items]


def test_backward_lists_gradients_of_outputs_and_of_inputs(mix):
    data = mix.data()
    assert shapes(data["Functional.linear.0.backward"]["input"]) == [[10, 4]]
    assert shapes(data["Functional.linear.0.backward"]["output"]) == [[4], None, [8, 4]]
    assert shapes(data["Functional.linear.1.backward"]["output"]) == [[4], [10, 4], [4, 4]]
    assert shapes(data["Module.block.0.Linear.backward.0"]["output"]) == [[10, 4]]
    # Its input needs no gradient.
    assert data["Module.linear_1.Linear.backward.0"]["output"] == []


def test_parameter_gradients_come_in_the_order_they_arrive(mix):
    entry = mix.data()["Module.block.0.Linear.parameters_grad.0"]
    assert list(entry) == ["bias", "weight"]
    assert [shapes(entry[name]) for name in entry] == [[[4]], [[4, 4]]]


def test_stack_of_a_module_goes_through_the_user_code(mix):
    stacks = mix.json("stack.json")
    found = [frames for names, frames in stacks.values() if "Module.linear_1.Linear.forward.0" in names]
    script = str(mix.root.parent / "script.py")
    assert any("in forward, \n x = self.linear_1(x)" in frame and script in frame for frame in found[0])
    assert not any(str(PACKAGE_ROOT / "msprobe") in frame for frame in found[0])


def test_level_l0_has_modules_only(tmp_path):
    dump = capture(tmp_path, NET + NET_STEP, level="L0")
    assert dump.names() == [name for name in NET_NAMES if name.startswith("Module.")]
    assert dump.construct() == {
        name: parent if (parent or "").startswith("Module.") else None
        for name, parent in NET_CONSTRUCT.items()
        if name.startswith("Module.")
    }


def test_structure_has_no_data(tmp_path):
    dump = capture(tmp_path, NET + NET_STEP, task="structure", level="mix")
    assert dump.json("dump.json")["task"] == "structure"
    assert dump.data() == {}
    assert dump.construct() == NET_CONSTRUCT
    names = [name for entry in dump.json("stack.json").values() for name in entry[0]]
    assert sorted(names) == sorted(name for name in NET_CONSTRUCT if ".forward" in name)


def test_a_list_of_models_numbers_them(tmp_path):
    body = NET + "debugger.start(model=[net, nn.Sequential(nn.Linear(4, 2))])\nnet(x)\ndebugger.stop()\n"
    names = capture(tmp_path, body, level="L0").names()
    assert "Module.0.linear_1.Linear.forward.0" in names
    assert all(name.startswith("Module.0.") for name in names)


# ---- which entries there are


def test_moves_and_casts_are_left_out_but_counted(tmp_path):
    body = (
        "debugger.start(model=nn.Linear(1, 1))\nx = torch.ones(2, 3)\ntorch.cat([x, x]).mul(2)\ntorch.cat([x]).add(1)\n"
    )
    dump = capture(tmp_path, body + "debugger.stop()\n", level="mix")
    assert dump.names() == ["Tensor.mul.0.forward", "Tensor.add.0.forward"]
    assert set(dump.construct()) == {
        "Torch.cat.0.forward",
        "Tensor.mul.0.forward",
        "Torch.cat.1.forward",
        "Tensor.add.0.forward",
    }


def test_only_the_outermost_call_is_recorded(tmp_path):
    body = (
        "debugger.start()\nF.softmax(torch.ones(3), dim=0)\ntorch.einsum('ij,jk', torch.ones(2, 2), torch.ones(2, 2))\n"
    )
    assert capture(tmp_path, body + "debugger.stop()\n").names() == [
        "Functional.softmax.0.forward",
        "Torch.einsum.0.forward",
    ]


def test_an_exception_inside_a_call_leaves_no_trace_on_the_next(tmp_path):
    body = """
debugger.start()
x = torch.ones(2, 3)
for broken in (lambda: torch.add(x, "no"), lambda: F.softmax("no", dim=0), lambda: F.linear(x, x.T), lambda: x @ x):
    try:
        broken()
    except (TypeError, AttributeError, RuntimeError):
        continue
    raise SystemExit("the call did not fail")
torch.mul(x, 2)
F.softmax(x, dim=0)
debugger.stop()
"""
    names = capture(tmp_path, body).names()
    assert [name.rsplit(".", 2)[0] for name in names if "mul" in name or "softmax" in name][-2:] == [
        "Torch.mul",
        "Functional.softmax",
    ]


def test_start_and_stop_within_a_step_count_on(tmp_path):
    body = "x = torch.ones(2)\nfor _ in range(2):\n    debugger.start()\n    torch.mul(x, 2)\n    debugger.stop()\n    x.add(1)\n"
    dump = capture(tmp_path, body + "debugger.step()\n")
    assert dump.names() == ["Torch.mul.0.forward", "Torch.mul.1.forward"]


def test_steps_that_are_not_asked_for_are_not_written(tmp_path):
    body = "x = torch.ones(2)\nfor _ in range(4):\n    debugger.start()\n    torch.mul(x, 2)\n    debugger.stop()\n    debugger.step()\n"
    dump = capture(tmp_path, body, step=["1-2"])
    assert sorted(path.name for path in dump.root.iterdir()) == ["step1", "step2"]
    assert dump.names(step=2) == ["Torch.mul.0.forward"]
    assert "msprobe ends successfully." in dump.script.stdout + dump.script.stderr


def test_set_init_step(tmp_path):
    body = "debugger.set_init_step(7)\ndebugger.start()\ntorch.mul(torch.ones(2), 2)\ndebugger.stop()\n"
    assert capture(tmp_path, body).names(step=7) == ["Torch.mul.0.forward"]


def test_ranks_that_are_not_asked_for_are_not_written(tmp_path):
    body = "debugger.start(rank_id=1)\ntorch.mul(torch.ones(2), 2)\ndebugger.stop()\ndebugger.step()\n"
    dump = capture(tmp_path / "other", body, rank=[0])
    assert not list(dump.root.rglob("dump.json"))
    dump = capture(tmp_path / "this", body, rank=["0-1"])
    assert dump.names(rank="rank1") == ["Torch.mul.0.forward"]


def test_without_extra_info_there_is_only_the_data(tmp_path):
    dump = capture(tmp_path, NET + NET_STEP, level="mix", extra_info=False)
    assert sorted(path.name for path in dump.directory().iterdir()) == ["dump.json", "dump_summary.json"]
    assert dump.names() == NET_NAMES


@pytest.mark.parametrize(
    "section, wanted",
    [
        ({"list": ["relu"]}, lambda name: "relu" in name),
        ({"data_mode": ["forward"]}, lambda name: name.endswith(".forward")),
        (
            {"scope": ["Functional.relu.0.forward", "Tensor.sum.0.forward"]},
            lambda name: name in ("Functional.relu.0.forward", "Functional.relu.1.forward", "Tensor.sum.0.forward"),
        ),
    ],
)
def test_filters_of_the_section(tmp_path, section, wanted):
    body = NET + NET_STEP.replace("start(model=net)", "start()")
    everything = [name for name in NET_NAMES if not name.startswith("Module.")]
    assert capture(tmp_path, body, section=section).names() == [name for name in everything if wanted(name)]


def test_functions_the_user_adds_and_leaves_out(tmp_path):
    body = "debugger.start()\nx = torch.ones(2, 3)\nx[0]\nF.gelu(x)\nF.relu(x)\ndebugger.stop()\n"
    dump = capture(tmp_path, body, custom_apis={"torch.Tensor": ["__getitem__"]}, exclude_apis=["gelu"])
    assert dump.names() == ["Tensor.__getitem__.0.forward", "Functional.relu.0.forward"]


# ---- when things go wrong

UNUSUAL = """
from torch._subclasses.fake_tensor import FakeTensorMode
debugger.start()
x = torch.ones(2, 3)
results = [torch.add(x.to_sparse(), x.to_sparse()).to_dense(), torch.add(torch.ones(2, device="meta"), 1)]
with FakeTensorMode() as mode:
    results.append(torch.add(torch.ones(2), 1))
gone = torch.ones(4)
gone.untyped_storage().resize_(0)
results.append(torch.mul(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(), 2))
results.append(torch.mul((x + 1j).conj().imag, 2))
results.append(torch.func.vmap(lambda t: torch.mul(t, 2))(x))
results.append(torch.func.grad(lambda t: torch.mul(t, t).sum())(x))
results.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2)
assert torch.equal(results[0], x * 2) and torch.equal(results[4], x * -2)
torch.neg(x)
torch.exp(x)
debugger.stop()
debugger.step()
print("finished")
"""


def test_tensors_that_cannot_be_read_stop_nothing(tmp_path):
    dump = capture(tmp_path, UNUSUAL)
    assert "finished" in dump.script.stdout
    data = dump.data()
    assert {"Torch.add.0.forward", "Torch.add.1.forward", "Torch.add.2.forward", "Torch.exp.0.forward"} <= set(data)
    meta = data["Torch.add.1.forward"]["output"][0]
    assert [meta[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    lazily_negated = data["Torch.mul.1.forward"]["input_args"][0]
    assert (lazily_negated["Max"], lazily_negated["Min"]) == (-1.0, -1.0)


def test_an_uncaught_exception_loses_nothing(tmp_path):
    body = "debugger.start()\ntorch.mul(torch.ones(2), 2)\nraise KeyError('of the training')\n"
    dump = capture(tmp_path, body, check=False)
    assert dump.script.returncode == 1 and "of the training" in dump.script.stderr
    assert dump.names() == ["Torch.mul.0.forward"]


def test_a_killed_run_leaves_a_complete_file(tmp_path):
    body = """
import os, signal, time
debugger.start(rank_id=0)
x = torch.ones(4)
for _ in range(3500):
    torch.mul(x, 2)
until = time.monotonic() + 60
while time.monotonic() < until and json.load(open("dump/step0/rank0/dump_summary.json"))["ops"] < 2000:
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""
    dump = capture(tmp_path, body, check=False)
    assert dump.script.returncode == -9
    names = dump.names(rank="rank0")
    assert len(names) >= 2000
    assert names == [f"Torch.mul.{number}.forward" for number in range(len(names))]


def test_a_forked_child_records_nothing(tmp_path):
    body = """
import os
debugger.start()
x = torch.ones(2)
torch.mul(x, 2)
if os.fork() == 0:
    torch.exp(x)
    os._exit(0)
os.wait()
torch.add(x, 1)
debugger.stop()
"""
    assert capture(tmp_path, body).names() == ["Torch.mul.0.forward", "Torch.add.0.forward"]


def test_wrong_use_is_named(tmp_path):
    body = """
for level_needs_model in (None, 5):
    try:
        debugger.start(model=level_needs_model)
    except Exception as error:
        print(type(error).__name__, error)
assert PrecisionDebugger() is debugger
"""
    early = """
from msprobe.pytorch import PrecisionDebugger
try:
    PrecisionDebugger.start()
except Exception as error:
    print(error)
"""
    output = capture(tmp_path, body, early=early, level="L0").script.stdout
    assert "PrecisionDebugger instance is not created." in output
    assert output.count("MsprobeException [msprobe] Invalid parameter: ") == 2


def test_functions_of_one_name_share_their_numbers(tmp_path):
    """torch.linalg.norm is a function of its own, recorded as Torch.norm is: no entry may replace another."""
    body = """
a = torch.randn(4, 3, requires_grad=True)
debugger.start()
(torch.linalg.norm(a) + torch.norm(a) + torch.linalg.cross(a, a).sum() + torch.cross(a, a, dim=1).sum()).backward()
debugger.stop()
debugger.step()
"""
    dump = capture(tmp_path, body, level="L1")
    text = (dump.directory() / "dump.json").read_text()
    for name in ("norm", "cross"):
        for number in (0, 1):
            for way in ("forward", "backward"):
                assert text.count(f'"Torch.{name}.{number}.{way}": ') == 1, (name, number, way)

"""Tasks that decide after an op ran whether it is kept: overflow_check, difference dump, exception_dump."""

import json
import math

import pytest
import torch
from capture_helpers import capture

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.divisor = nn.Linear(4, 4), 1.0

    def forward(self, x):
        return torch.relu(self.fc(x).div_(self.divisor))

model = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 4))

def bits():
    return [p.grad.double().sum().item().hex() for p in model.parameters()] + [torch.rand(1).item()]

def step(divisor=1.0, watch=True):
    model.zero_grad()
    model[1].divisor = divisor
    if watch:
        debugger.start(model=model)
    model(torch.ones(2, 4)).sum().backward()
    if watch:
        debugger.stop()
        debugger.step()
    print("BITS", bits())
"""


def bits(dump):
    return [line for line in dump.script.stdout.splitlines() if line.startswith("BITS")]


def steps(dump):
    return sorted(path.name for path in dump.root.iterdir())


def listed(dump, step=0):
    """Names in stack.json and in construct.json."""
    stacks = dump.json("stack.json", step=step)
    return {name for names, _ in stacks.values() for name in names}, set(dump.construct(step=step))


def leaves(value):
    if isinstance(value, dict) and "shape" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)


def assert_files_fit(dump, step):
    """Each tensor of the step's ops has a file with its values, and there are no others."""
    directory = dump.directory(step) / "dump_tensor_data"
    assert dump.json("dump.json", step=step)["dump_data_dir"] == str(directory)
    named = {item["data_name"]: item for item in leaves(dump.data(step=step)) if "data_name" in item}
    assert named
    assert sorted(named) == sorted(path.name for path in directory.iterdir())
    for name, item in named.items():
        tensor = torch.load(directory / name, weights_only=True)
        assert list(tensor.shape) == item["shape"]
        assert math.isnan(item["Max"]) == bool(tensor.isnan().any())
        assert math.isnan(item["Max"]) or tensor.max().item() == item["Max"]


OVERFLOWS = NET + "for divisor in (1.0, 0.0, 1.0, 0.0): step(divisor)\n"


def test_only_ops_whose_outputs_overflow_are_kept(tmp_path):
    section = {"overflow_nums": -1, "check_mode": "atomic"}
    dump = capture(tmp_path / "mix", OVERFLOWS, task="overflow_check", level="mix", section=section)
    assert "only an NPU in saturation mode has" in dump.script.stderr + dump.script.stdout
    assert steps(dump) == ["step1", "step3"]
    data = dump.data(step=1)
    names = list(data)
    assert names[:3] == ["Tensor.div_.0.forward", "Torch.relu.0.forward", "Module.1.Block.forward.0"]
    assert "Functional.linear.1.forward" not in names  # its output is what div_ overwrites
    assert "Module.2.Linear.parameters_grad.0" in names
    assert "Tensor.div_.0.backward" in names
    # In-place: the input is shown as it was.
    item = data["Tensor.div_.0.forward"]["input_args"][0]
    assert all(math.isfinite(item[key]) for key in ("Max", "Min", "Mean", "Norm"))
    assert not math.isfinite(data["Tensor.div_.0.forward"]["output"][0]["Max"])
    assert_files_fit(dump, 1)
    assert item["data_name"] == "Tensor.div_.0.forward.input.0.pt"
    weight = "Module.2.Linear.parameters_grad.0.weight.pt"
    assert data["Module.2.Linear.parameters_grad.0"]["weight"][0]["data_name"] == weight
    stacks, construct = listed(dump, step=1)
    assert stacks == {name for name in names if ".forward" in name}
    above = {"Module.2.Linear.backward.0"}  # its own gradient is fine: it is the parent of one that is not
    assert construct == {name for name in names if "parameters_grad" not in name} | above
    plain = capture(tmp_path / "plain", OVERFLOWS.replace("watch=True", "watch=False"), level="mix")
    assert bits(dump) == bits(plain)


@pytest.mark.parametrize("level, count", [("L0", 1), ("L1", 2), ("mix", 3)])
def test_collection_ends_after_overflow_nums(tmp_path, level, count):
    body = NET + "for divisor in (1.0, 0.0, 0.0, 1.0): step(divisor)\n"
    # Once as if the tensors were on a device, whose values arrive later.
    early = "import os\nos.environ['MSPROBE_FORCE_DEVICE_PATH'] = '1'\n" if level == "L1" else ""
    dump = capture(tmp_path, body, early=early, task="overflow_check", level=level, section={"overflow_nums": count})
    assert steps(dump) == ["step1"]
    assert len(dump.data(step=1)) == count
    assert (
        dump.script.stderr.count("msprobe ends successfully") + dump.script.stdout.count("msprobe ends successfully")
        == 1
    )
    assert len(bits(dump)) == 4
    plain = capture(tmp_path / "plain", body.replace("watch=True", "watch=False"), level="mix")
    assert bits(dump) == bits(plain)


def test_data_mode_applies_to_what_is_kept_and_not_to_the_decision(tmp_path):
    section = {"overflow_nums": -1, "data_mode": ["forward", "input"], "list": ["div_", "relu"]}
    dump = capture(tmp_path, OVERFLOWS, task="overflow_check", level="L1", section=section)
    data = dump.data(step=1)
    assert list(data) == ["Tensor.div_.0.forward", "Torch.relu.0.forward"]
    assert all(set(entry) == {"input_args", "input_kwargs"} for entry in data.values())
    assert_files_fit(dump, 1)


FAILS = """
def attempt(x):
    try:
        model(x)
    except RuntimeError as error:
        print("CAUGHT", type(error).__name__, error)
step()
debugger.start(model=model)
attempt(torch.ones(2, 3))
debugger.stop()
debugger.step()
step()
debugger.start(model=model)
model(torch.ones(2, 4))
raise KeyError("of the user")
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_what_raises_is_written_with_the_ops_before(tmp_path, level):
    body = NET + FAILS.replace(
        "attempt(torch.ones(2, 3))", "torch.ones(3).sum(); model(torch.ones(2, 4)); attempt(torch.ones(2, 3))"
    )
    dump = capture(tmp_path, body, task="exception_dump", level=level, section={"last_ops": 3}, check=False)
    assert dump.script.returncode == 1
    assert "CAUGHT RuntimeError mat1 and mat2 shapes cannot be multiplied" in dump.script.stdout
    assert "\nKeyError: 'of the user'\n" in dump.script.stderr
    assert "tasks.py" not in dump.script.stderr.split("Traceback")[-1]
    assert steps(dump) == ["step1", "step3"]
    names = dump.names(step=1)
    failed = {
        "L0": ["Module.0.Linear.forward.1"],
        "L1": ["Functional.linear.3.forward"],
        "mix": ["Functional.linear.3.forward", "Module.0.Linear.forward.1"],
    }[level]
    assert names[3:] == failed
    entry = dump.data(step=1)[failed[0]]
    assert entry["input_args"][0]["shape"] == [2, 3]
    assert "output" not in entry
    last = [name for name in names[:3] if "Module" not in name or level == "L0"]
    assert last
    assert all("output" in dump.data(step=1)[name] for name in last)
    stacks, construct = listed(dump, step=1)
    assert stacks == set(names)
    tensors = {name: list(leaves(entry)) for name, entry in dump.data(step=1).items()}
    assert all("data_name" in item for name in failed for item in tensors[name])
    assert not any("data_name" in item for name in names[:3] for item in tensors[name])
    assert_files_fit(dump, 1)
    assert construct == (set(names) if level != "L1" else set())
    assert len(dump.names(step=3)) == 3


def test_an_exception_in_a_block_of_code(tmp_path):
    body = (
        NET
        + """
def train():
    with debugger.record(model):
        model(torch.ones(2, 4))
        raise ValueError("not of an op")
try:
    train()
except ValueError:
    pass
step()
"""
    )
    dump = capture(tmp_path, body, task="exception_dump", level="L1", section={"last_ops": 2})
    assert steps(dump) == ["step0"]
    assert dump.names() == ["Torch.relu.0.forward", "Functional.linear.2.forward"]


def test_ops_that_differ_from_the_bench(tmp_path):
    bench = capture(tmp_path / "bench", NET + "step()\nstep()\n", level="mix", section={"summary_mode": "md5"})
    path = bench.directory() / "dump.json"
    dump = json.loads(path.read_text())
    for op, side in (
        ("Functional.linear.1.forward", "output"),  # as hardware that computes something else
        ("Torch.relu.0.forward", "input_args"),
        ("Torch.relu.0.forward", "output"),  # its input differs, too: it is not at fault
        ("Functional.linear.2.backward", "output"),
    ):
        dump["data"][op][side][0]["md5"] = "00000000"
    del dump["data"]["Functional.linear.0.forward"]
    path.write_text(json.dumps(dump))
    section = {"summary_mode": "md5", "bench_path": str(bench.root), "diff_nums": -1}
    again = capture(tmp_path / "again", NET + "step()\nstep()\n", task="diff_check", level="mix", section=section)
    assert_files_fit(again, 0)
    assert again.names() == ["Functional.linear.1.forward", "Functional.linear.2.backward"]
    assert steps(again) == ["step0"]
    assert "1 ops of" in again.script.stderr + again.script.stdout
    assert bits(again) == bits(bench)
    section["diff_nums"] = 1
    one = capture(tmp_path / "one", NET + "step()\nstep()\n", task="diff_check", level="mix", section=section)
    assert one.names() == ["Functional.linear.1.forward"]
    assert "msprobe ends successfully" in one.script.stderr + one.script.stdout
    assert bits(one) == bits(bench)


def test_a_bench_of_the_earlier_tool(tmp_path, old_python):
    keys = {"level": "L1", "section": {"summary_mode": "md5"}}
    bench = capture(tmp_path / "bench", NET + "step()\n", python=old_python, **keys)
    (path,) = bench.root.glob("step0/*/dump.json")
    dump = json.loads(path.read_text())
    dump["data"]["Functional.linear.1.backward"]["output"][2]["md5"] = "00000000"
    path.write_text(json.dumps(dump))
    section = {"summary_mode": "md5", "bench_path": str(bench.root), "diff_nums": -1}
    ours = capture(tmp_path / "ours", NET + "step()\n", task="tensor", level="L1", section=section)
    assert ours.names() == ["Functional.linear.1.backward"]
    assert "not in the bench" not in ours.script.stderr + ours.script.stdout


@pytest.mark.parametrize(
    "config, texts",
    [
        ({"task": "nan_check"}, ["task nan_check", "NPU", "overflow_check"]),
        ({"task": "free_benchmark", "free_benchmark": {"pert_mode": "some"}}, ["pert_mode is some", "bit_noise"]),
        ({"task": "free_benchmark", "free_benchmark": {"pert_mode": "to_cpu"}}, ["fuzz_device is npu", "cpu with"]),
        (
            {"task": "free_benchmark", "free_benchmark": {"handler_type": "fix", "fuzz_stage": "backward"}},
            ["fuzz_stage is backward", "forward with handler_type fix"],
        ),
        ({"task": "free_benchmark", "free_benchmark": {"preheat_step": 0}}, ["preheat_step is 0", "above 0"]),
        ({"task": "run_ut"}, ["task run_ut", "task tensor"]),
        ({"task": "tensor", "level": "L2"}, ["level L2", "NPU", "mix"]),
        ({"task": "overflow_check", "level": "debug"}, ["level is debug", "L0, L1, mix"]),
        ({"task": "overflow_check", "overflow_check": {"overflow_nums": 0}}, ["overflow_nums is 0", "-1", "line 5"]),
        ({"task": "overflow_check", "overflow_check": {"check_mode": "some"}}, ['check_mode is "some"', "aicore"]),
        ({"task": "overflow_check", "overflow_check": {"summary_mode": "xor"}}, ["summary_mode is xor", "md5"]),
        ({"task": "exception_dump", "exception_dump": {"last_ops": -1}}, ["last_ops is -1", "0 to"]),
        ({"task": "diff_check"}, ["bench_path is missing"]),
        ({"task": "tensor", "tensor": {"bench_path": "/tmp"}}, ["summary_mode is statistics", "md5"]),
        ({"task": "tensor", "tensor": {"bench_path": "/nowhere", "summary_mode": "md5"}}, ["bench_path", "/nowhere"]),
        ({"task": "diff_check", "diff_check": {"diff_nums": True}}, ["diff_nums is True"]),
    ],
)
def test_configurations_that_cannot_be_done(tmp_path, config, texts):
    from msprobe._capture import tasks
    from msprobe._capture.config import MsprobeException, load_config
    from msprobe.pytorch.framework import PYTORCH

    path = tmp_path / "config.json"
    path.write_text(json.dumps({"dump_path": str(tmp_path), **config}, indent=1))
    with pytest.raises(MsprobeException) as caught:
        tasks.check(load_config(str(path)), PYTORCH)
    text = str(caught.value)
    assert text.startswith("[msprobe] Invalid parameter: ")
    assert str(path) in text
    assert all(part in text for part in texts), text
    assert len(text.splitlines()) == 1

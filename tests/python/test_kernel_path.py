"""Statistics by the kernel of devices, with a library in the place of the driver that runs the kernel's host build."""

import json
import math
import subprocess

import pytest
from capture_helpers import capture
from launch import HERE, run_python
from test_device_path import LARGE, ZOO, agree, close, items_of

ROOT = HERE.parents[1]
COUNTS = """
import ctypes
stand_in = ctypes.CDLL("libcuda.so.1")
def launches():
    return stand_in.stand_in_count(b"launch")
"""
OF_CHECK = 3  # launches when a device is met


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = ROOT / "tests" / "device" / "stand_in_driver.cc"
    flags = [
        "-std=c++20",
        "-O1",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-I",
        ROOT / "src",
    ]
    subprocess.run(["c++", *flags, source, "-o", path], check=True)
    return path


@pytest.fixture
def env(library):
    return {"LD_PRELOAD": str(library), "MSPROBE_FORCE_DEVICE_PATH": "1", "MSPROBE_DEVICE_KERNEL": "host"}


def record(directory, monkeypatch, env, body, early="", **config):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    dump = capture(directory, body, early=early, **config)
    for name in env:
        monkeypatch.delenv(name)
    return dump


def without_kernel(env):
    """Nothing asks for the kernel: it is for whoever wants it, until a device has run it."""
    return {name: value for name, value in env.items() if name != "MSPROBE_DEVICE_KERNEL"}


def test_every_type_has_the_values_of_the_present_path(tmp_path, monkeypatch, env):
    body = COUNTS + ZOO + 'print("LAUNCHES", launches())\n'
    dumps = [
        record(tmp_path / "a", monkeypatch, env, body),
        record(tmp_path / "b", monkeypatch, without_kernel(env), body),
    ]
    assert int(dumps[0].script.stdout.split("LAUNCHES ")[1]) > 60
    assert "LAUNCHES 0" in dumps[1].script.stdout
    found, expected = map(items_of, dumps)
    assert len(found) == len(expected) > 60
    for item, other in zip(found, expected):
        assert list(item) == list(other)
        assert all(close(item[k], other[k], 0) for k in item if k not in ("Mean", "Norm")), (item, other)
        scale = abs(other["Norm"] or 0) / math.sqrt(max(math.prod(item["shape"]), 1))
        assert close(item["Norm"], other["Norm"], 1e-12), (item, other)
        close_means = close(item["Mean"], other["Mean"], 1e-12)
        assert close_means or abs(item["Mean"] - other["Mean"]) <= 1e-12 * scale, (item, other)


def test_sums_of_many_elements(tmp_path, monkeypatch, env):
    dump = record(tmp_path, monkeypatch, env, LARGE)
    wide = json.loads(dump.script.stdout.split("WIDE ")[1])
    assert len(items_of(dump)) == len(wide) == 28
    for item, (mean, absolute, norm) in zip(items_of(dump), wide):
        assert abs(item["Mean"] - mean) <= 1e-12 * absolute and math.isclose(item["Norm"], norm, rel_tol=1e-11), item


def test_tensors_of_a_call_are_one_launch_before_the_training_goes_on(tmp_path, monkeypatch, env):
    body = (
        COUNTS
        + """
import types
zoo = types.ModuleType("zoo")
zoo.op = lambda *tensors: None
sys.modules["zoo"] = zoo
debugger.register_custom_api(zoo, "op")
tensors = [torch.full((5,), float(i)) for i in range(12)]
debugger.start()
zoo.op(*tensors)
print("LAUNCHES", launches())
for x in tensors:
    x.fill_(-1)
debugger.stop()
debugger.step()
"""
    )
    dump = record(tmp_path, monkeypatch, env, body)
    assert f"LAUNCHES {OF_CHECK + 1}" in dump.script.stdout
    (entry,) = [value for name, value in dump.data().items() if name.startswith("zoo.")]
    assert [item["Max"] for item in entry["input_args"]] == [float(i) for i in range(12)]


MODEL = """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
data = torch.randn(16, 8)
debugger.start(model=model)
for _ in range(20):
    model(data).sum().backward()
debugger.stop()
debugger.step()
print("GRADIENT", model[0].weight.grad.sum().item())
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("plain"), MODEL, level="mix")


@pytest.mark.parametrize(
    "fault, said",
    [
        ("init_fails", "the driver did not give the device"),
        ("module_fails", "the driver did not take the kernel"),
        ("wrong", "the kernel gave other numbers than this machine"),
        ("alloc_fails=1", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("alloc_fails=2", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("launch_fails=4", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("launch_fails=30", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("capturing=1", None),
        ("capturing=2", None),
        ("late", None),
    ],
)
def test_what_the_device_refuses_takes_the_present_path(tmp_path, monkeypatch, env, plain, fault, said):
    dump = record(tmp_path, monkeypatch, {**env, "STAND_IN_FAULTS": fault}, MODEL, level="mix")
    assert dump.script.stdout == plain.script.stdout
    assert (said is None) == ("PyTorch computes the statistics of its tensors" not in dump.script.stderr)
    assert said is None or said in dump.script.stderr
    found, expected = dump.data(), plain.data()
    assert list(found) == list(expected)
    assert sum(agree(found[name], expected[name]) for name in expected) > 300


def test_a_lost_device_costs_values_and_nothing_else(tmp_path, monkeypatch, env, plain):
    dump = record(tmp_path, monkeypatch, {**env, "STAND_IN_FAULTS": "lost=30"}, MODEL, level="mix")
    assert dump.script.stdout == plain.script.stdout
    assert "CUDA_ERROR_LAUNCH_FAILED" in dump.script.stderr
    assert "because the values of a tensor did not come from its device" in dump.script.stderr
    found, expected = dump.data(), plain.data()
    assert list(found) == list(expected)
    missing = present = 0
    for name, entry in found.items():
        for item, other in zip(entry.get("input_args", ()), expected[name].get("input_args", ())):
            if isinstance(item, dict) and item.get("Max", 0) is None:
                missing += 1
            elif isinstance(item, dict) and "Max" in item:
                present += agree(item, other)
    assert missing > 0 and present > 100


@pytest.mark.parametrize("model", ["llama", "nested"])
def test_models_train_to_the_same_bits(tmp_path, env, model):
    def run(name, environment):
        out = tmp_path / name
        args = [HERE / "train_scenario.py", model, "--level", "mix", "--out", out, "--steps", "1"]
        done = run_python(args, cwd=tmp_path, env=environment)
        data = json.loads((out / "step0" / "rank0" / "dump.json").read_text())["data"]
        return done.stdout.replace(str(out), ""), data

    (bits, data), (kernel_bits, kernel) = run("direct", {}), run("kernel", env)
    assert kernel_bits == bits
    assert list(kernel) == list(data)
    assert sum(agree(kernel[name], data[name]) for name in data) > 100

"""Statistics that a device computes and that are fetched later; here the device is this machine's own memory."""

import json
import math

import pytest
import torch
from capture_helpers import capture
from launch import HERE, run_python

FORCED = {"MSPROBE_FORCE_DEVICE_PATH": "1"}
DTYPES = (
    "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int8 "
    "int16 int32 int64 uint8 uint16 uint32 uint64 bool complex32 complex64 complex128"
).split()

# One tensor of each type, strided and broadcast views, special values; the values that float64 gives are printed.
ZOO = f"""
import types
zoo = types.ModuleType("zoo")
zoo.op = lambda *tensors: None
sys.modules["zoo"] = zoo
debugger.register_custom_api(zoo, "op")
tensors = []
for name in {DTYPES}:
    x = (torch.randn(37, 11) * 20).abs() + 1
    if name.startswith(("int", "float", "bf", "complex")) and name != "float8_e8m0fnu":
        x = x * (torch.randint(0, 2, x.shape) * 2 - 1)
    if name == "uint64":
        x = torch.tensor([[3, 2**64 - 1, 2**63], [1, 2, 2**53 + 1]], dtype=torch.uint64)
    elif name == "int64":
        x = torch.tensor([[3, -(2**63), 2**62], [2**63 - 1, 2, 2**53 + 1]])
    x = x.to(getattr(torch, name))
    tensors += [x, x.t(), x[:1].expand(3, -1)] + ([x.conj()] if x.is_complex() else [])
tensors += [torch.tensor(-3.5), torch.tensor(7), torch.empty(0, 3), torch.tensor([1, float("nan"), float("inf")])]
tensors += [torch.tensor([2.0, -float("inf")], dtype=torch.half), torch.tensor([60000.0], dtype=torch.half)]
debugger.start()
for x in tensors:
    zoo.op(x)
debugger.stop()
debugger.step()
wide = []
for x in tensors:
    x = x.to(torch.complex128).abs() if x.is_complex() else x.to(torch.float64)
    wide.append([x.sum().item() / max(x.numel(), 1), x.norm().item()])
print("WIDE", json.dumps(wide))
"""


def items_of(dump):
    return [entry["input_args"][0] for name, entry in dump.data().items() if name.startswith("zoo.")]


def run_zoo(directory, monkeypatch, forced, early="", **config):
    if forced:
        monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    dump = capture(directory, ZOO, early=early, **config)
    monkeypatch.delenv("MSPROBE_FORCE_DEVICE_PATH", raising=False)
    return dump


def close(a, b, rel):
    if not isinstance(a, float) or not math.isfinite(a):
        return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
    return math.isclose(a, b, rel_tol=rel, abs_tol=rel)


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    return run_zoo(tmp_path_factory.mktemp("direct"), patch, False)


# Pieces of 64 elements, segments of 8 cells: tensors in several pieces, segments that are sent, waited for and used again.
SMALL = """
from msprobe.pytorch import device_stats
device_stats._CHUNK, device_stats._CELLS, device_stats._SEGMENTS = 64, 8, 2
"""
# A device whose copies come late: events are never ready before they are waited for.
LATE = """
class Backend:
    waited = 0
    capturing = False
    class Event:
        def record(self, stream): pass
        def query(self): return False
        def synchronize(self): Backend.waited += 1
    @staticmethod
    def current_stream(device): return None
    @staticmethod
    def is_current_stream_capturing(): return Backend.capturing
device_stats._backend = lambda device: Backend
pageable = device_stats._host_memory
device_stats._host_memory = lambda shape, dtype, backend: pageable(shape, dtype, None)
"""


@pytest.mark.parametrize("early", ["", SMALL, SMALL + LATE], ids=["one", "pieces", "late"])
def test_values_of_every_type(tmp_path, monkeypatch, direct, early):
    dump = run_zoo(tmp_path, monkeypatch, True, early=early)
    found, expected = items_of(dump), items_of(direct)
    wide = json.loads(dump.script.stdout.split("WIDE ")[1])
    assert len(found) == len(expected) == len(wide) > 60
    for item, other, (mean, norm) in zip(found, expected, wide):
        assert list(item) == list(other)
        exact = {key: value for key, value in item.items() if key not in ("Mean", "Norm")}
        assert all(close(value, other[key], 0) for key, value in exact.items()), (item, other)
        if item["dtype"] == "torch.bool" or not item["shape"] or item["Max"] is None or math.isnan(item["Max"]):
            assert close(item["Mean"], other["Mean"], 0) and close(item["Norm"], other["Norm"], 0)
            continue
        assert close(item["Mean"], mean, 1e-12) and close(item["Norm"], norm, 1e-12), item
        scale = abs(other["Norm"]) / math.sqrt(max(math.prod(item["shape"]), 1))
        assert not math.isfinite(norm) or abs(item["Mean"] - other["Mean"]) <= 1e-6 * scale
        assert close(item["Norm"], other["Norm"], 1e-6)


# Sums of many elements: all of one sign, cancelling to nearly nothing, of very different sizes.
LARGE = """
import types
zoo = types.ModuleType("zoo")
zoo.op = lambda *tensors: None
sys.modules["zoo"] = zoo
debugger.register_custom_api(zoo, "op")
tensors = []
for numel in (1023, 1024, 40000, 300000):
    x = torch.randn(numel)
    spread = x * torch.logspace(-6, 6, numel)[torch.randperm(numel)]
    tensors += [x, x.abs() + 0.1, torch.full_like(x, 0.1), torch.cat([x, -x, x[:1]]), spread]
tensors += [x.to(kind) for x in tensors[5:9] for kind in (torch.float16, torch.bfloat16)]
debugger.start()
for x in tensors:
    zoo.op(x)
debugger.stop()
debugger.step()
wide = [x.to(torch.float64) for x in tensors]
print("WIDE", json.dumps([[x.mean().item(), x.abs().mean().item(), x.norm().item()] for x in wide]))
"""


def test_host_and_device_agree_as_far_as_documented(tmp_path, monkeypatch):
    """docs/en/capture/values.md: Mean to 2e-6 of the mean absolute value, Norm to 1e-6 of itself."""
    dumps = [capture(tmp_path / "host", LARGE)]
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    dumps.append(capture(tmp_path / "device", LARGE))
    host, device = map(items_of, dumps)
    wide = json.loads(dumps[0].script.stdout.split("WIDE ")[1])
    assert len(host) == len(device) == len(wide) == 28
    for near, far, (mean, absolute, norm) in zip(host, device, wide):
        assert (near["Max"], near["Min"]) == (far["Max"], far["Min"])
        assert abs(near["Mean"] - mean) <= 2e-6 * absolute and math.isclose(near["Norm"], norm, rel_tol=1e-6), near
        assert abs(far["Mean"] - mean) <= 1e-12 * absolute and math.isclose(far["Norm"], norm, rel_tol=1e-11), far
        assert abs(near["Mean"] - far["Mean"]) <= 2e-6 * absolute
        assert math.isclose(near["Norm"], far["Norm"], rel_tol=1e-6)


def test_without_double_precision(tmp_path, monkeypatch, direct):
    early = "from msprobe.pytorch import device_stats\ndevice_stats._widest = lambda device: torch.float32\n"
    found = items_of(run_zoo(tmp_path, monkeypatch, True, early=early))
    for item, other in zip(found, items_of(direct)):
        if item["dtype"] in ("torch.float64", "torch.complex128"):
            continue
        rounded = 1e-6 if "complex" in item["dtype"] else 0
        assert close(item["Max"], other["Max"], rounded) and close(item["Min"], other["Min"], rounded), (item, other)
        # Squares of such integers leave the range of float32.
        assert "64" in item["dtype"] or close(item["Norm"], other["Norm"], 1e-5)


@pytest.mark.parametrize("early", ["", "from msprobe.pytorch import device_stats\ndevice_stats._RING = 4096\n"])
def test_checksums_are_those_of_the_direct_path(tmp_path, monkeypatch, early):
    section = {"summary_mode": "md5"}
    once = run_zoo(tmp_path / "a", monkeypatch, False, section=section)
    late = SMALL + LATE if early else ""
    again = run_zoo(tmp_path / "b", monkeypatch, True, early=late + early, section=section)
    found, expected = items_of(again), items_of(once)
    assert len(found) == len(expected) > 60
    for item, other in zip(found, expected):
        assert item["md5"] == other["md5"]
        assert agree({key: value for key, value in item.items() if key != "md5"}, other) == 1


def test_tensors_are_saved_as_by_the_direct_path(tmp_path, monkeypatch):
    dumps = [run_zoo(tmp_path / str(forced), monkeypatch, forced, task="tensor") for forced in (False, True)]
    first, second = (sorted((dump.directory() / "dump_tensor_data").iterdir()) for dump in dumps)
    assert [path.name for path in first] == [path.name for path in second]
    assert len(first) > 60
    for a, b in zip(first, second):
        assert a.read_bytes() == b.read_bytes(), a.name


def test_a_captured_graph_is_left_alone(tmp_path, monkeypatch):
    body = """
Backend.capturing = True
debugger.start()
torch.add(torch.ones(3), 1)
Backend.capturing = False
torch.mul(torch.ones(3), 2)
debugger.stop()
debugger.step()
"""
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    dump = capture(tmp_path, body, early=SMALL + LATE)
    assert dump.data()["Torch.add.0.forward"]["output"][0]["Max"] is None
    assert dump.data()["Torch.mul.0.forward"]["output"][0]["Max"] == 2.0
    assert "skipped 2 because a tensor was met while a graph of the device was captured (2)" in dump.script.stderr


def test_nothing_is_waited_for_during_a_step(tmp_path, monkeypatch):
    early = """
from msprobe.pytorch import device_stats, many
many.are_there("cpu")  # looks once in a process whether a device has the kernels
waits = []
def counted(name):
    original = getattr(torch.Tensor, name)
    def call(*args, **kwargs):
        waits.append(name)
        return original(*args, **kwargs)
    setattr(torch.Tensor, name, call)
for name in ("item", "cpu", "tolist", "numpy", "__bool__", "__float__", "__int__"):
    counted(name)
"""
    body = """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
data = torch.randn(16, 8)
state, threads = torch.get_rng_state(), None
debugger.start(model=model)
with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
    model(data)
for _ in range(300):
    model(data).sum().backward()
print("WAITS", len(waits), Backend.waited)
debugger.stop()
debugger.step()
print("RNG", torch.equal(state, torch.get_rng_state()))
"""
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    dump = capture(tmp_path, body, early=early + LATE, level="mix")
    assert "WAITS 0 0" in dump.script.stdout
    assert "RNG True" in dump.script.stdout
    data = dump.data()
    assert len(data) > 2000
    assert all(entry["input_args"][0]["Max"] is not None for name, entry in data.items() if "forward" in name)


@pytest.mark.parametrize("model", ["llama", "nested"])
def test_models_train_to_the_same_bits_and_give_the_same_values(tmp_path, model):
    def run(name, env):
        out = tmp_path / name
        args = [HERE / "train_scenario.py", model, "--level", "mix", "--out", out, "--steps", "1"]
        done = run_python(args, cwd=tmp_path, env=env)
        return done.stdout.replace(str(out), ""), json.loads((out / "step0" / "rank0" / "dump.json").read_text())[
            "data"
        ]

    (bits, data), (forced_bits, forced) = run("direct", {}), run("forced", FORCED)
    assert forced_bits == bits
    assert list(forced) == list(data)
    count = sum(agree(forced[name], data[name]) for name in data)
    assert count > 100


def agree(item, other):
    """Compares two entries; how many tensors are in them."""
    if isinstance(item, dict) and "Max" in item:
        assert [key for key in other if key != "md5" or key in item] == list(item)
        assert all(close(item[k], other[k], 0) for k in item if k not in ("Mean", "Norm")), (item, other)
        numel = max(math.prod(item["shape"]), 1)
        assert close(item["Norm"], other["Norm"], 1e-6)
        if isinstance(item["Mean"], float) and math.isfinite(item["Mean"]):
            assert abs(item["Mean"] - other["Mean"]) <= 1e-6 * abs(other["Norm"]) / math.sqrt(numel)
        return 1
    if isinstance(item, (dict, list)):
        assert len(item) == len(other)
        keys = item if isinstance(item, dict) else range(len(item))
        return sum(agree(item[key], other[key]) for key in keys)
    assert item == other
    return 0


def test_single_values_are_there_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    dump = capture(tmp_path, 'debugger.save({"a": torch.arange(4.0)}, "x")\ndebugger.step()\n', level="debug")
    saved = dump.json("debug.json")["data"]["x.0.debug"]["a"]
    assert (saved["Max"], saved["Mean"]) == (3.0, 1.5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("section", [{}, {"summary_mode": "md5"}])
def test_on_a_cuda_device(tmp_path, section):
    body = """
x = torch.randn(64, 64)
y = x.to("cuda")
debugger.start()
torch.cuda.set_sync_debug_mode("error")  # whatever waits raises
torch.add(y, 1)
torch.cuda.set_sync_debug_mode("default")
debugger.stop()
debugger.step()
print("EXPECTED", x.max().item(), x.double().norm().item())
"""
    dump = capture(tmp_path, body, section=section)
    item = dump.data()["Torch.add.0.forward"]["input_args"][0]
    most, norm = map(float, dump.script.stdout.split("EXPECTED ")[1].split())
    assert item["Max"] == most and math.isclose(item["Norm"], norm, rel_tol=1e-6)
    assert ("md5" in item) == bool(section)

"""What PyTorch can do with a model besides a plain forward and backward: the bits stay, and the dump has what ran."""

import json

import pytest
from capture_helpers import capture
from launch import HERE, run_python
from runs_scenario import SCENARIOS

NAMES = list(SCENARIOS)


class Runs:
    def __init__(self, directory, script):
        self.directory, self.script = directory, script
        self.result = json.loads((directory / "result.json").read_text())

    def file(self, scenario, name="dump.json"):
        return json.loads((self.directory / "dump" / f"step{NAMES.index(scenario)}" / "rank" / name).read_text())

    def data(self, scenario):
        return self.file(scenario)["data"]

    def count(self, scenario, *parts):
        return sum(all(part in name for part in parts) for name in self.data(scenario))

    def log(self, scenario):
        path = self.directory / "dump" / f"step{NAMES.index(scenario)}" / "rank" / "dump_error_info.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    config = {"task": "statistics", "level": "mix", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps(config))
    return Runs(directory, run_python([HERE / "runs_scenario.py", directory], cwd=directory))


@pytest.mark.parametrize("name", [*NAMES, "stopped"])
def test_the_same_bits(runs, name):
    assert runs.result[name]


# A backward that runs twice (a gradient of a gradient) has the number of its forward both times.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gradient_penalty"])
def test_every_op_has_one_entry(runs, name):
    for file in ("dump.json", "construct.json"):
        path = runs.directory / "dump" / f"step{NAMES.index(name)}" / "rank" / file
        json.loads(path.read_text(), object_pairs_hook=unique)


def unique(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_was_skipped(runs, name):
    reason = {"hooks_of_the_user": "register_backward_hook"}.get(name)
    assert reason in runs.log(name) if reason else not runs.log(name)


def test_recomputation(runs):
    # Two blocks: once, and again in the backward of the outer and of the inner checkpoint.
    assert runs.count("nested_checkpoints", ".a.Linear.forward.") == 2 * 2
    # Without reentrance the outer recomputation ends early, with the last tensor that the backward needs.
    assert runs.count("nested_checkpoints", "1.b.Linear.forward.") == 2
    assert runs.count("nested_checkpoints", "3.b.Linear.forward.") == 3
    assert runs.count("nested_checkpoints", ".b.Linear.backward.") == 2
    assert "Torch.relu.0.forward" in runs.data("nested_checkpoints")  # behind them


def test_graphs(runs):
    views = runs.data("in_place_and_views")
    assert {"Tensor.__setitem__.0.forward", "Tensor.add_.0.forward", "Module.0.lin.Linear.backward.0"} <= set(views)
    penalty = runs.data("gradient_penalty")
    # The first pass for the gradient, the second through it.
    assert runs.count("gradient_penalty", "Functional.linear", "backward") >= 2
    assert penalty["Module.0.Linear.backward.0"]["output"][0]["shape"] == [4, 8]
    hooked = runs.data("hooks_of_the_user")
    assert hooked["Module.0.Linear.forward.0"]["output"][0]["shape"] == [4, 8]
    assert not any(name.startswith("Module.2.1.ReLU.backward") for name in hooked)
    assert runs.count("saved_tensors", "Module.3.Linear.backward.") == 2
    assert runs.count("modes_of_the_user", "Module.3.Linear.forward.") == 2


def test_precision_transforms_and_modes(runs):
    mixed = runs.data("mixed_precision")
    assert mixed["Module.0.Linear.forward.0"]["output"][0]["dtype"] == "torch.bfloat16"
    assert mixed["Module.0.Linear.parameters_grad.1"]["weight"][0]["dtype"] == "torch.float32"
    kinds = {
        item["type"]
        for name, entry in runs.data("transforms").items()
        if name.startswith("Functional.linear") and name.endswith("forward")
        for item in entry["input_args"]
        if item
    }
    assert kinds == {"torch.Tensor", "torch._C._functorch.GradTrackingTensor"}
    assert runs.count("without_gradients", "Module.0.Linear.forward.") == 5
    assert runs.count("without_gradients", "Module.0.Linear.backward.") == 0
    assert runs.count("without_gradients", "Module.3.Linear.parameters_grad.") == 1


def test_optimizers(runs):
    parents = runs.file("optimizers", "construct.json")
    assert parents["optimizer"] is None
    inside = {name for name, parent in parents.items() if parent == "optimizer"}
    assert any(name.startswith("Tensor.lerp_") for name in inside)  # not foreach
    # Closures run the model inside the optimizer: what modules call is theirs.
    assert parents["Functional.linear.0.forward"] == "Module.0.Linear.forward.0"
    assert parents["Tensor.pow.0.forward"] == "optimizer"
    penalized = runs.file("mixed_precision", "construct.json")
    assert penalized["clip_grad"] is None and penalized["Torch._foreach_norm.0.forward"] == "clip_grad"
    assert runs.count("optimizers", "Module.0.Linear.forward.") == 3 + 3  # LBFGS asks three times
    assert runs.count("two_optimizers", "Module.1.2.Linear.backward.") == 2 * 3
    assert runs.count("two_optimizers", "Module.0.0.Linear.backward.") == 2
    assert runs.count("accumulated_gradients", "Module.0.Linear.parameters_grad.") == 3


def test_models(runs):
    unusual = runs.data("unusual_models")
    assert runs.count("unusual_models", "Module.normed.ParametrizedLinear.forward.") == 3
    assert runs.count("unusual_models", "Module.normed.parametrizations.weight.0._WeightNorm.forward.") == 3
    assert "Module.parallel.DataParallel.forward.0" in unusual
    assert "Module.parallel.module.Linear.backward.0" in unusual
    assert not any(name.startswith("Module.shared.0") for name in unusual)  # its first name is used
    # Copies are other models: only the functions they call are recorded.
    assert runs.count("copies", "Module.0.Linear.forward.") == 1
    assert runs.count("copies", "Functional.linear", "forward") == 3 * 5
    # A module that comes while a step runs is known from the next start().
    assert runs.count("replaced_modules", "Module.1.Sigmoid.forward.") == 1
    assert runs.count("replaced_modules", "Module.1.Tanh.forward.") == 1
    assert runs.count("replaced_modules", "Module.4.Linear.backward.") == 1


def test_errors_and_unusual_forwards(runs):
    failed = runs.data("errors")
    assert "Module.1.lin.Linear.forward.0" in failed and "Module.3.Linear.forward.0" in failed
    parents = runs.file("errors", "construct.json")
    assert parents["Module.3.Linear.forward.0"] is None
    assert parents["Module.0.Sequential.forward.0"] is None
    assert parents["Module.0.0.Linear.forward.0"] == "Module.0.Sequential.forward.0"
    assert runs.count("generators_and_coroutines", "Module.0.lin.Linear.forward.") == 3
    assert runs.count("generators_and_coroutines", "Module.1.lin.Linear.forward.") == 2
    parents = runs.file("generators_and_coroutines", "construct.json")
    assert parents["Module.2.Linear.forward.0"] is None


def test_threads_and_processes(runs):
    for i in range(3):
        assert runs.count("threads", f"Module.{i}.0.Linear.backward.") == 1
    # What workers and children compute is theirs.
    assert runs.count("processes", "Module.0.Linear.forward.") == 3 * 2
    assert runs.count("processes", "Functional.softmax") == 0


EXTENSIONS = """
import sys, types
def module(name, **members):
    made = sys.modules[name] = types.ModuleType(name)
    for key, value in members.items():
        if isinstance(value, types.FunctionType):
            value.__module__ = name
        setattr(made, key, value)
    return made

library = torch.library.Library("npu", "DEF")
library.define("npu_swiglu(Tensor x, int dim=-1) -> Tensor")
library.impl("npu_swiglu", lambda x, dim=-1: x * torch.sigmoid(x), "CompositeImplicitAutograd")

@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

def npu_rms_norm(x, gamma, epsilon=1e-6):
    return x * gamma, x
def npu_fusion_attention(q, k, v, n):
    return q + k + v, q, k, v, 1, 2, 3
def npu_helper_type():
    pass
module("torch_npu", npu_rms_norm=npu_rms_norm, npu_fusion_attention=npu_fusion_attention, fast_gelu=lambda x: x + 1,
       npu_swiglu=torch.ops.npu.npu_swiglu, get_device=lambda: 0)
kept = sys.modules["torch_npu"].npu_rms_norm
"""

EXTENSIONS_BODY = """
def npu_gmm(x, w):
    return x @ w
x = torch.ones(2, 2)
debugger.start()
npu = sys.modules["torch_npu"]
kept(x, x, epsilon=1e-5)
npu.npu_fusion_attention(x, x, x, 1)
npu.fast_gelu(x)
npu.npu_swiglu(x)
torch.ops.npu.npu_swiglu(x, dim=0)
npu.get_device()
twice(x)
torch.ops.mine.twice(x)
torch.ops.mine.twice.default(x)
debugger.stop()
debugger.step()

# Extensions that come later.
module("mindspeed"), module("mindspeed.ops")
gmm = module("mindspeed.ops.gmm", npu_gmm=npu_gmm)
class JITFunction:
    def __init__(self, fn):
        self.fn, self.__name__ = fn, fn.__name__
    def run(self, *args, grid, warmup, **kwargs):
        self.fn(*args)
class Autotuner:
    def __init__(self, fn):
        self.fn = fn
    def run(self, *args, **kwargs):
        self.fn.run(*args, **kwargs)
module("triton"), module("triton.runtime"), module("triton.runtime.jit", JITFunction=JITFunction)
module("triton.runtime.autotuner", Autotuner=Autotuner)
def add_one(out):
    out.add_(1)
kernel = Autotuner(JITFunction(add_one))
debugger.start()
gmm.npu_gmm(x, x)
kernel.run(x, grid=(1,), warmup=False)
debugger.stop()
debugger.step()
"""


FOREIGN = """
import numpy
@torch.library.custom_op("mine::quiet", mutates_args=())
def quiet(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(numpy.exp(x.numpy()))

library = torch.library.Library("yours", "DEF")
library.define("hushed(Tensor x) -> Tensor")
library.impl("hushed", lambda x: torch.from_numpy(x.numpy() + 1), "CPU")
library.define("loud(Tensor x) -> Tensor")
library.impl("loud", lambda x: x * 2, "CPU")

def step():
    debugger.start(model=nn.Identity())
    x = torch.ones(2, 2)
    quiet(x), torch.ops.mine.quiet(x), torch.ops.yours.hushed(x), torch.ops.yours.loud(x)
    debugger.stop()
    debugger.step()
"""


@pytest.mark.parametrize("level, known, count", [("mix", [], 3), ("L1", ["mine"], 1), ("L0", [], 0)])
def test_operators_that_nobody_asked_to_record_are_counted(tmp_path, level, known, count):
    """But for those of which the functions that they call are recorded."""
    dump = capture(tmp_path, "step()", early=FOREIGN, level=level, custom_op_namespaces=known)
    told = f"skipped {count} because an operator is in none of custom_op_namespaces ({count})"
    assert (told in dump.script.stderr + dump.script.stdout) == (count > 0)
    assert count > 0 or "skipped" not in dump.script.stderr + dump.script.stdout
    if level == "mix":
        assert list(dump.data()) == ["Tensor.__mul__.0.forward"]


def test_operators_of_extensions(tmp_path):
    dump = capture(tmp_path, EXTENSIONS_BODY, early=EXTENSIONS, level="L1", custom_op_namespaces=["mine"])
    data = dump.data()
    assert list(data) == [
        "NPU.npu_rms_norm.0.forward",
        "NPU.npu_fusion_attention.0.forward",
        "NPU.fast_gelu.0.forward",
        "NPU.npu_swiglu.0.forward",
        "NPU.npu_swiglu.1.forward",
        "mine.twice.0.forward",
        "mine.twice.1.forward",
        "mine.twice.2.forward",
    ]
    assert data["NPU.npu_rms_norm.0.forward"]["input_kwargs"] == {"epsilon": {"type": "float", "value": 1e-05}}
    assert data["NPU.npu_fusion_attention.0.forward"]["output"][3:] == [
        data["NPU.fast_gelu.0.forward"]["input_args"][0]
    ] + [
        None,
        None,
        {"type": "int", "value": 3},
    ]
    later = dump.data(step=1)
    assert list(later) == ["MindSpeed.npu_gmm.0.forward", "Triton.add_one.0.forward"]
    kernel = later["Triton.add_one.0.forward"]
    assert kernel["input_args"][0]["Max"] == 1.0 and kernel["output"][0]["Max"] == 2.0
    assert kernel["input_kwargs"]["grid"] == [{"type": "int", "value": 1}]


def test_functions_that_were_imported_by_name(tmp_path):
    # As Megatron does; and a region of communications that begins only at its end.
    early = """
import torch.distributed as dist
from torch.distributed import all_reduce
from torch.distributed.distributed_c10d import _all_gather_base, _coalescing_manager
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
store = dist.TCPStore("127.0.0.1", port, 1, True)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
"""
    body = """
x, y, whole = torch.ones(2), torch.ones(2), torch.zeros(2)
debugger.start()
all_reduce(x)
_all_gather_base(whole, x * 3)
with _coalescing_manager(async_ops=True) as manager:
    all_reduce(x)
    all_reduce(y)
manager.wait()
debugger.stop()
debugger.step()
"""
    dump = capture(tmp_path, body, early=early, level="L1")
    data = {name: entry for name, entry in dump.data(rank="rank0").items() if name.startswith("Distributed")}
    assert list(data) == [
        "Distributed.all_reduce.0.forward",
        "Distributed._all_gather_base.0.forward",
        "Distributed.all_reduce.1.forward",
        "Distributed.all_reduce.2.forward",
    ]
    assert data["Distributed._all_gather_base.0.forward"]["output"][0]["Max"] == 3.0
    assert all(entry["output"][0]["Max"] == 1.0 for name, entry in data.items() if "all_reduce" in name)
    assert not (dump.directory(rank="rank0") / "dump_error_info.log").exists()

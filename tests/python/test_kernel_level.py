"""Level L2 of PyTorch: refused where there is no NPU; with one, its runtime is told what to dump, and when. The runtime is
a stand-in that notes what it is told."""

import json

import pytest

NPU = """
import json, sys, types
import torch
told = []
class Runtime(types.SimpleNamespace):
    def is_available(self): return True
    def synchronize(self): pass
    def init_dump(self): told.append("init")
    def set_dump(self, path): told.append(json.load(open(path)))
    def finalize_dump(self): told.append("end")
torch.npu = Runtime()
from msprobe.pytorch import PrecisionDebugger
config, dump = json.loads(CONFIG), "dump"
with open(dump + ".json", "w") as file:
    json.dump({"task": "tensor", "level": "L2", "dump_path": dump, **config}, file)
try:
    debugger = PrecisionDebugger(config_path=dump + ".json")
except Exception as error:
    sys.exit(str(error))
linear = torch.nn.functional.linear
x, w = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
for step in range(2):
    debugger.start()
    for _ in range(2):
        told.append("forward")
        y = torch.nn.functional.linear(x, w)
    told.append("backward")
    y.sum().backward()
    debugger.stop()
    debugger.step()
print(json.dumps({"told": told, "same": torch.nn.functional.linear is linear, "grad": x.grad.tolist()}))
"""


def script(config, npu=True):
    text = f"CONFIG = {json.dumps(config)!r}\n{NPU}"
    return text if npu else text.replace("torch.npu = Runtime()", "")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_runtime_is_told(run_script, tmp_path, direction):
    done = run_script(script({"tensor": {"list": [f"Functional.linear.1.{direction}"]}}))
    said = json.loads(done.stdout.splitlines()[-1])
    expected = []
    for step in range(2):
        directory = tmp_path / "dump" / f"step{step}" / "rank"
        assert [path.name.split("_")[0] for path in directory.iterdir()] == ["kernel"]
        dump = {"dump_list": [], "dump_path": str(directory), "dump_mode": "all", "dump_op_switch": "on"}
        telling = ["init", {"dump": dump}, "end"]
        forward = telling if direction == "forward" else []
        expected += ["forward", "forward", *forward, "backward", *(telling if direction == "backward" else [])]
    assert said == {"told": expected, "same": True, "grad": [[8.0] * 3] * 2}


@pytest.mark.parametrize(
    "config, text",
    [
        ({"task": "statistics"}, "task is statistics; allowed: tensor at level L2"),
        ({"tensor": {"list": []}}, "list is []; allowed: one name of a call at level L2"),
        ({"tensor": {"list": ["Functional.linear.0.forward"], "scope": ["Module.a", "Module.b"]}}, "scope"),
        ({"tensor": {"list": ["Functional.nothing.0.forward"]}}, "there is no function of this name"),
    ],
)
def test_what_cannot_be_dumped_is_refused(run_script, config, text):
    done = run_script(script(config), check=False)
    assert done.returncode == 1 and text in done.stderr.splitlines()[-1], done.stderr[-800:]


def test_without_an_npu(run_script):
    done = run_script(script({"tensor": {"list": ["Functional.linear.0.forward"]}}, npu=False), check=False)
    assert done.returncode == 1 and "here is no NPU; level mix" in done.stderr.splitlines()[-1], done.stderr[-800:]

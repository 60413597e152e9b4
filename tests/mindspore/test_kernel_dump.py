"""Level L2: the settings that MindSpore's own dump is given, and on a CPU what it writes by them."""

import json
import pathlib

import pytest
from launch import run_mindspore

# Keys without which the runtime refuses the file, and values it takes.
REQUIRED = {"dump_mode", "path", "net_name", "iteration", "saved_data", "input_output", "kernels", "support_device"}
SETTINGS = """
import json, os, sys
os.environ["GLOG_v"] = "4"
from msprobe._capture.config import load_config
from msprobe.mindspore.kernel_dump import settings
path, whole = sys.argv[1], sys.argv[2] == "O2"
for config in json.loads(sys.argv[3]):
    with open(path, "w") as file:
        json.dump(config, file)
    print(json.dumps(settings(load_config(path), whole)))
"""
GRAPH = """
import os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops
from msprobe.mindspore import PrecisionDebugger
ms.set_context(mode=ms.GRAPH_MODE)
debugger = PrecisionDebugger(task="tensor", level=sys.argv[2], dump_path=sys.argv[1])
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 2)
    def construct(self, x):
        return ops.tanh(self.fc(x))
net = Net()
debugger.start(net)
print(net(Tensor(np.ones((3, 4), np.float32))).asnumpy().shape)
debugger.stop()
debugger.step()
"""


def settings_of(tmp_path, python, level, *configs):
    configs = [{"dump_path": str(tmp_path / "dump"), "level": "L2", **config} for config in configs]
    command = [python, "-c", SETTINGS, tmp_path / "config.json", level, json.dumps(configs)]
    done = run_mindspore(command, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_settings(tmp_path, mindspore_python):
    every, some, checksums, overflow, crash = settings_of(
        tmp_path,
        mindspore_python,
        "O0",
        {"task": "tensor"},
        {"task": "tensor", "step": ["0-2", 5], "rank": [1], "tensor": {"list": ["MatMul"], "data_mode": ["input"]}},
        {"task": "statistics", "statistics": {"summary_mode": "md5"}},
        {"task": "overflow_check", "overflow_check": {"overflow_nums": 3}},
        {"task": "exception_dump"},
    )
    for one in (every, some, checksums, overflow, crash):
        assert set(one["common_dump_settings"]) >= REQUIRED
        assert one["e2e_dump_settings"] == {"enable": True, "trans_flag": True}
        assert pathlib.Path(one["common_dump_settings"]["path"]).is_absolute()
    assert every["common_dump_settings"]["iteration"] == "all" and every["common_dump_settings"]["dump_mode"] == 0
    chosen = some["common_dump_settings"]
    assert chosen["iteration"] == "0-2|5" and chosen["support_device"] == [1]
    assert (chosen["dump_mode"], chosen["kernels"], chosen["input_output"]) == (1, ["MatMul"], 1)
    assert checksums["common_dump_settings"]["statistic_category"] == ["hash:md5"]
    assert (
        overflow["common_dump_settings"]["op_debug_mode"] == 3
        and overflow["common_dump_settings"]["overflow_number"] == 3
    )
    assert crash["common_dump_settings"]["op_debug_mode"] == 4


def test_settings_of_whole_graphs(tmp_path, mindspore_python):
    (one,) = settings_of(tmp_path, mindspore_python, "O2", {"task": "statistics"})
    assert "e2e_dump_settings" not in one and one["common_dump_settings"]["file_format"] == "npy"


def graph(tmp_path, python, level, dump="dump"):
    script = tmp_path / "graph.py"  # the compiler reads the source
    script.write_text(GRAPH)
    command = [python, script, tmp_path / dump, level]
    return run_mindspore(command, timeout=180)


def test_kernels_of_a_graph_on_a_cpu(plain_path, mindspore_python):
    done = graph(plain_path, mindspore_python, "L2")
    assert done.returncode == 0 and "(3, 2)" in done.stdout, done.stderr[-2000:]
    arrays = [path.name for path in (plain_path / "dump").rglob("*.npy")]
    assert any("MatMul" in name for name in arrays) and any("Tanh" in name for name in arrays), arrays


def test_a_path_that_mindspore_does_not_write_to(tmp_path, mindspore_python):
    """Said where the debugger is made; MindSpore says it at the first graph."""
    done = graph(tmp_path, mindspore_python, "L2", "run.1")
    assert done.returncode != 0 and "ParseDumpPath" not in done.stderr
    assert "dump_path: MindSpore writes only to paths of letters, digits, - and _" in done.stderr, done.stderr[-800:]
    assert not (tmp_path / "run.1").exists()


@pytest.mark.parametrize("level, text", [("L0", "GRAPH_MODE needs an Ascend"), ("mix", "GRAPH_MODE: use level L2")])
def test_levels_of_pynative_mode_are_refused(tmp_path, mindspore_python, level, text):
    done = graph(tmp_path, mindspore_python, level)
    assert done.returncode != 0 and text in done.stderr, done.stderr[-800:]


CELLS = """
import os, sys
os.environ["GLOG_v"] = "4"
import json
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from msprobe._capture.config import load_config
from msprobe.mindspore import graph_cells, graph_modes, hooks
ms.set_context(mode=ms.GRAPH_MODE)
with open(sys.argv[1] + ".json", "w") as file:
    json.dump({"task": "statistics", "level": "L0", "dump_path": sys.argv[1]}, file)
config = load_config(sys.argv[1] + ".json")
net = nn.SequentialCell(nn.Dense(4, 3), nn.SequentialCell(nn.ReLU(), nn.ReLU()))
cells = list(hooks.named_cells(net))
modes = graph_modes.of_cells(cells, graph_modes.of_mindformers())
print(json.dumps({base: modes[id(cell)] for base, cell in cells if id(cell) in modes}))
graph_cells.prepare(config)
graph_cells.wrap(hooks.named_cells(net), config)
print(open(os.environ["MINDSPORE_DUMP_CONFIG"]).read())
del os.environ["MINDSPORE_DUMP_CONFIG"]  # statistics of kernels are not for a CPU
print(os.environ["MS_KERNEL_LAUNCH_SKIP"], file=sys.stderr)
net(Tensor(np.ones((2, 4), np.float32)))
"""


# As MindFormers has it: of which Cells TensorDump shows what is given.
MODES = """# modes
SequentialCell:
  "1": (out,in)  # by the path inside the class
TopLayer:
  0: (in,[out,in])
  1: (sideways,in)
"""


def test_cells_of_a_graph_are_compiled_with_operators_that_dump(plain_path, mindspore_python):
    """As far as a CPU goes: the graph is compiled, and then there is no kernel for the operator."""
    script = plain_path / "cells.py"
    script.write_text(CELLS)
    (plain_path / "mindformers/configuration").mkdir(parents=True)
    (plain_path / "mindformers/__init__.py").write_text("raise ImportError('for an Ascend')\n")
    (plain_path / "mindformers/configuration/layer_mapping.yaml").write_text(MODES)
    done = run_mindspore([mindspore_python, script, plain_path / "dump"], timeout=120)
    assert "layer_mapping.yaml, line 6 is not understood" in done.stdout + done.stderr
    assert done.returncode != 0 and "Unsupported op [TensorDump] on CPU" in done.stderr, done.stderr[-2000:]
    assert "Cell.0.Dense.forward.input.0" in done.stderr and "\nTensorDump\n" in done.stderr
    modes, settings = done.stdout.split("\n", 1)
    assert json.loads(modes) == {"Cell.0.Dense": [[True], [False, True]], "Cell.1.1.ReLU": [[False], [True]]}
    settings = json.loads(settings)
    assert set(settings["common_dump_settings"]) >= REQUIRED
    assert settings["common_dump_settings"]["kernels"] == ["TensorDump"]
    assert settings["e2e_dump_settings"] == {"enable": False, "trans_flag": True, "stat_calc_mode": "device"}


@pytest.mark.parametrize("place, first", [("forward", "Kernel.Log.0.forward"), ("backward", "GradKernel.")])
def test_operators_one_by_one_in_pynative_mode(tmp_path, mindspore_python, place, first):
    command = [mindspore_python, pathlib.Path(__file__).parent / "kernels_scenario.py", tmp_path / "dump", place]
    done = run_mindspore(command, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout)["same"], done.stderr[-2000:]
    (entry,) = json.loads((tmp_path / "dump/step0/rank/dump.json").read_text())["data"].items()
    assert entry[0].startswith(first) and entry[1]["output"][0]["nan_count"] == 8

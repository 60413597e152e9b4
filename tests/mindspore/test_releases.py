"""Releases of MindSpore before 2.10 tell no hook of a Cell that raised: the same entries and tree (older_release.py).

What else they lack is tested with them (tests/versions).
"""

import json
import pathlib

import pytest
from launch import run_mindspore

SCRIPT = pathlib.Path(__file__).parent / "capture_scenario.py"


@pytest.fixture(scope="module")
def both(tmp_path_factory, mindspore_python):
    """both(model, config) -> ((entries, tree of Cells, what was printed) of the newest, the same of the older)."""

    def run(model, **config):
        found = []
        for release in ([], ["1", "older"]):
            dump = tmp_path_factory.mktemp(model) / "dump"
            done = run_mindspore([mindspore_python, SCRIPT, model, dump, json.dumps(config), *release], timeout=120)
            assert done.returncode == 0, done.stderr[-2000:]
            rank = dump / "step0" / "rank"
            entries, tree = (json.loads((rank / name).read_text()) for name in ("dump.json", "construct.json"))
            found.append((entries["data"], tree, done.stdout))
        return found

    return run


def test_an_older_release_records_the_same(both):
    newest, older = both("small", level="mix")
    assert newest == older
    entries, tree, _ = older
    assert entries["Cell.second.Dense.backward.0"]["output"][0]["shape"] == [3, 4]
    assert "Cell.second.Dense.parameters_grad.0" in entries
    assert tree["Primitive.matmul.MatMul.1.forward"] == "Cell.second.Dense.forward.0"


def test_a_cell_that_raised_has_ended(both):
    """No hook tells it in an older release: the next call outside of the Cell does."""
    newest, older = both("caught", level="mix")
    for entries, tree, _ in (newest, older):
        assert tree["Functional.abs.0.forward"] == "Cell.brittle.Brittle.forward.0"
        assert tree["Functional.tanh.0.forward"] is None
        assert entries["Cell.brittle.Brittle.forward.0"]["output"] == [None]
    assert newest[0].keys() == older[0].keys() and newest[1:] == older[1:]


LACKING = """
import sys
import mindspore as ms
from mindspore import nn, Tensor

api = getattr(ms.graph, "api", None) or ms.common.api
ms.set_context(mode=ms.PYNATIVE_MODE)
executor = type(api._pynative_executor)
lost = [executor.queue_backward_final_callback]
del executor.queue_backward_final_callback
from msprobe.mindspore import PrecisionDebugger

net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
for _ in range(2):
    debugger.start(net)
    step(Tensor([[1.0, -2.0]]))
    debugger.stop()
    debugger.step()
"""


def test_a_release_that_tells_no_gradients_is_said_to(tmp_path, mindspore_python):
    done = run_mindspore([mindspore_python, "-c", LACKING, tmp_path / "dump"], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    told = [line for line in done.stderr.splitlines() if "does not tell nodes of the backward pass" in line]
    assert len(told) == 3 and "step 0" in told[1] and "step 1" in told[2], told  # at construction, and in each summary
    entries = json.loads((tmp_path / "dump/step1/rank/dump.json").read_text())["data"]
    assert entries["Cell.0.Dense.forward.0"]["output"][0]["shape"] == [1, 2]
    assert not any("backward" in name or "parameters_grad" in name for name in entries)


FAILING = """
import sys
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_context(mode=ms.PYNATIVE_MODE)
from msprobe.mindspore import PrecisionDebugger

@ms.jit
def scaled(x, weight):
    return x * weight

@ms.jit
def failing(x):
    return ops.matmul(x, "of the script")

net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
debugger = PrecisionDebugger(task="statistics", level=sys.argv[2], dump_path=sys.argv[1])

def forward(x):
    return scaled(net(x), net[0].weight).sum()

step = ms.value_and_grad(forward, None, net.trainable_params())
for recorded in (False, True):
    if recorded:
        debugger.start(net)
    loss, grads = step(Tensor([[1.0, -2.0], [0.5, 1.0]]))
    print([float(grad.sum().asnumpy()) for grad in (loss, *grads)])
    try:
        failing(Tensor([1.0]))
    except BaseException as error:
        print(type(error).__name__)
    if recorded:
        debugger.stop()
        debugger.step()
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_graphs_compile_and_fail_as_without_us(tmp_path, mindspore_python, level):
    """MindSpore 2.7 compiles the hooks of a parameter, too; what a compiler raises is the script's."""
    script = tmp_path / "script.py"
    script.write_text(FAILING)
    done = run_mindspore([mindspore_python, script, tmp_path / "dump", level], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    values, failure, same_values, same_failure = done.stdout.splitlines()
    assert failure == same_failure != "SystemError" and values == same_values
    entries = json.loads((tmp_path / "dump/step0/rank/dump.json").read_text())["data"]
    assert "Cell.0.Dense.parameters_grad.0" in entries


REFUSED = (
    (
        {"task": "free_benchmark", "free_benchmark": {"fuzz_stage": "backward"}},
        "fuzz_stage backward needs MindSpore 2.9",
    ),
    ({"task": "overflow_check", "level": "L2"}, "task overflow_check at level L2 needs MindSpore 2.9"),
)
REFUSING = """
import sys
import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.__version__ = "2.8.0"
vars(ms).pop("MsDispatchMode", None)
from msprobe.mindspore import MsprobeException, PrecisionDebugger

try:
    PrecisionDebugger(sys.argv[1])
except MsprobeException as error:
    print(error)
"""


@pytest.mark.parametrize("config, said", REFUSED)
def test_what_a_release_cannot_do_is_refused(tmp_path, mindspore_python, config, said):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"level": "L1", "dump_path": str(tmp_path / "dump"), **config}))
    done = run_mindspore([mindspore_python, "-c", REFUSING, path], timeout=120)
    assert said in done.stdout and "2.8.0" in done.stdout, done.stdout + done.stderr[-1000:]

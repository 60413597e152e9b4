"""`msprobe run` on MindSpore scripts that have no line of ours, and the example of the quick start."""

import json
import pathlib
import subprocess

import pytest
from launch import run_mindspore

REPO = pathlib.Path(__file__).parent.parent.parent
SCRIPT = """
import os, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.out = nn.Dense(4, 2)

    def construct(self, x):
        return self.out(ops.tanh(self.fc(x)))

net = Net()
data = [Tensor(np.random.default_rng(i).standard_normal((3, 4)).astype(np.float32)) for i in range(3)]
label = Tensor(np.zeros((3, 2), np.float32))
{loop}
print("LOSSES", [float(loss.asnumpy()).hex() for loss in losses])
"""
LOOPS = {
    "value_and_grad": """
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = ms.value_and_grad(lambda x: ((net(x) - label) ** 2).mean(), None, optimizer.parameters)
losses = []
for x in data:
    loss, grads = step(x)
    optimizer(grads)
    losses.append(loss)
""",
    "train_one_step_cell": """
optimizer = nn.SGD(net.trainable_params(), 0.1)
whole = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
losses = [whole(x, label) for x in data]
""",
    "inference": "losses = [net(x).sum() for x in data]",
}


def run(command, **given):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=180, **given)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("loop", LOOPS)
def test_without_a_line(tmp_path, mindspore_python, loop):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(loop=LOOPS[loop]))
    bare = run_mindspore([mindspore_python, script])
    assert bare.returncode == 0, bare.stderr[-3000:]
    msprobe = mindspore_python.parent / "msprobe"
    done = run([msprobe, "run", "--dump-path", tmp_path / "dump", "--level", "mix", "--", mindspore_python, script])
    losses = [next(line for line in d.stdout.splitlines() if line.startswith("LOSSES")) for d in (bare, done)]
    assert losses[0] == losses[1]
    steps = sorted((tmp_path / "dump").glob("step*/rank/dump.json"))
    assert [path.parent.parent.name for path in steps] == ["step0", "step1", "step2"], done.stderr[-2000:]
    for path in steps:
        entries = list(json.loads(path.read_text())["data"])
        assert "Cell.fc.Dense.forward.0" in entries and "Functional.tanh.0.forward" in entries
        assert loop == "inference" or "Cell.fc.Dense.backward.0" in entries


def test_the_example_names_the_weight(tmp_path, mindspore_python):
    example, msprobe = REPO / "examples" / "mindspore" / "train.py", mindspore_python.parent / "msprobe"
    for side, sabotage in (("golden", "none"), ("problem", "weight")):
        done = run_mindspore([mindspore_python, example, "--dump", tmp_path / side, "--sabotage", sabotage])
        assert done.returncode == 0, done.stderr[-3000:]
    done = run(
        [msprobe, "compare", "-tp", tmp_path / "problem/step0", "-gp", tmp_path / "golden/step0", "-o", tmp_path]
    )
    assert "layers.1.mlp.up_proj" in done.stdout and "weight" in done.stdout, done.stdout[-2000:]

"""Steps of MindSpore's optimizers, recorded and computed again."""

import json
import os
import subprocess

import pytest
from launch import run_mindspore

SCRIPT = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn

kind = sys.argv[1]
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 3))
draw = np.random.default_rng(9)
for parameter in net.trainable_params():
    parameter.set_data(ms.Tensor(draw.standard_normal(parameter.shape).astype(np.float32)))
weights = net.trainable_params()


class Mutant(nn.Optimizer):
    # AdamW whose eps is added inside of the root.

    def __init__(self, parameters):
        super().__init__(1e-2, parameters, weight_decay=0.1)
        self.betas, self.eps = (0.9, 0.95), 1e-3
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")

    def construct(self, gradients):
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = int(self.global_step.asnumpy().item())
        for p, g, m, v in zip(self.parameters, gradients, self.exp_avg, self.exp_avg_sq):
            first = 0.9 * m + 0.1 * g
            second = 0.95 * v + 0.05 * g * g
            update = first / (1 - 0.9**step) / ms.ops.sqrt(second / (1 - 0.95**step) + 1e-3)
            new = p * (1 - 1e-2 * 0.1) - 1e-2 * update
            ms.ops.assign(m, first), ms.ops.assign(v, second), ms.ops.assign(p, new)
        return True


class AdamWMutant(Mutant):
    pass


optimizer = {
    "Adam": lambda: nn.Adam(weights, 1e-2, weight_decay=0.1),
    "AdamWeightDecay": lambda: nn.AdamWeightDecay(weights, 1e-2, weight_decay=0.1),
    "Momentum": lambda: nn.Momentum(weights, 1e-2, 0.9, weight_decay=0.1),
    "SGD": lambda: nn.SGD(weights, 1e-2, momentum=0.9, weight_decay=0.1),
    "mutant": lambda: AdamWMutant(weights),
}[kind]()
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, weights)
for _ in range(4):
    loss, gradients = step(ms.Tensor(draw.standard_normal((8, 6)).astype(np.float32)))
    optimizer(gradients)
print("sum", sum(float(p.asnumpy().astype(np.float64).sum()) for p in weights).hex())
"""


def train(python, directory, kind, *options):
    command = [python, "script.py", kind]
    if options:
        command = [python.parent / "msprobe", "run", *options, "--", *command]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, env=environment)
    else:
        done = run_mindspore(command, cwd=directory)
    assert done.returncode == 0, done.stderr[-3000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("sum"))


@pytest.mark.parametrize("kind", ["Adam", "mutant"])  # AdamWeightDecay, Momentum and SGD are clean, too
def test_recorded_without_a_line_in_the_script(kind, tmp_path, mindspore_python):
    (tmp_path / "script.py").write_text(SCRIPT)
    if kind == "Adam":
        assert train(mindspore_python, tmp_path, kind) == train(
            mindspore_python, tmp_path, kind, "--save-optimizer", "r"
        )
    else:
        train(mindspore_python, tmp_path, kind, "--save-optimizer", "r")
    command = [mindspore_python.parent / "msprobe", "optimizer_replay", "r", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)
    assert len(result["a"]["steps"]) == 3 and len(result["a"]["weights"]) == 4
    assert [f["term"] for f in result["a"]["findings"]] == (["eps_inside_root"] if kind == "mutant" else []), (
        done.stdout
    )

"""Batches and gradients of MindSpore scripts, saved and replayed."""

import os
import subprocess

import pytest

SCRIPT = """
import sys
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn

kind, seed = sys.argv[1], int(sys.argv[2])
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
draw = np.random.default_rng(seed)
data = {"x": draw.standard_normal((12, 6)).astype(np.float32), "y": draw.integers(0, 3, 12).astype(np.int32)}
data = ds.NumpySlicesDataset(data, shuffle=False).batch(4)
net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 3))
fixed = np.random.default_rng(9)
for parameter in net.trainable_params():
    parameter.set_data(ms.Tensor(fixed.standard_normal(parameter.shape).astype(np.float32)))
optimizer = nn.Adam(net.trainable_params(), 1e-2)
loss_of = nn.CrossEntropyLoss()
if kind == "model":
    ms.Model(net, loss_of, optimizer).train(1, data, dataset_sink_mode=False)
else:
    step = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    for batch in data.create_dict_iterator() if kind == "dict" else data.create_tuple_iterator():
        loss, gradients = step(*(batch.values() if kind == "dict" else batch))
        optimizer(gradients)
print("sum", sum(float(p.asnumpy().astype(np.float64).sum()) for p in net.trainable_params()).hex())
"""


def run(python, directory, kind, seed, *options):
    command = [python.parent / "msprobe", "run", *options, "--", python, "script.py", kind, str(seed)]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("sum"))


@pytest.mark.parametrize("kind", ["dict", "model"])
def test_batches_and_gradients(kind, tmp_path, mindspore_python):
    (tmp_path / "script.py").write_text(SCRIPT)
    first = run(mindspore_python, tmp_path, kind, 1, "--save-batches", "b", "--save-grads", "g")
    assert run(mindspore_python, tmp_path, "tuple", 2, "--replay-batches", "b") == first
    assert run(mindspore_python, tmp_path, kind, 2, "--replay-grads", "g") == first
    assert sorted(path.name for path in (tmp_path / "g" / "step_2" / "rank_0").iterdir()) == [
        "grads.safetensors",
        "grads_norm.csv",
    ]

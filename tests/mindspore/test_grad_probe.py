"""Task grad_probe of MindSpore: tables and signs are those of the gradients, two trainings are compared by them."""

import csv
import zlib

import numpy as np
import pytest
from launch import run_mindspore

SCRIPT = """
import json, sys
import numpy as np
import mindspore as ms
from mindspore import nn
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
for level in ("none", "L0", "L1", "L2"):
    net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 3))
    draw = np.random.default_rng(9)
    for parameter in net.trainable_params():
        parameter.set_data(ms.Tensor(draw.standard_normal(parameter.shape).astype(np.float32)))
    weights = net.trainable_params()
    optimizer = nn.Adam(weights, 1e-2)
    if level != "none":
        section = {"grad_level": level, "bounds": [-0.5, 0, 0.5], "param_list": ["2."] if level == "L1" else []}
        config = {"task": "grad_probe", "dump_path": level, "step": [0, 2], "grad_probe": section}
        json.dump(config, open("config.json", "w"))
        PrecisionDebugger._instance = None
        debugger = PrecisionDebugger("config.json")
        debugger.monitor(optimizer)
    step = ms.value_and_grad(lambda x: net(x).square().mean(), None, weights)
    for number in range(3):
        _, gradients = step(ms.Tensor(draw.standard_normal((8, 6)).astype(np.float32)))
        if level == "none":
            np.savez(f"gradients{number}.npz", **{p.name: g.asnumpy() for p, g in zip(weights, gradients)})
        optimizer(gradients)
    print("sum", sum(float(p.asnumpy().astype(np.float64).sum()) for p in weights).hex())
try:
    debugger.monitor(net)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory, mindspore_python):
    directory = tmp_path_factory.mktemp("probe")
    (directory / "train.py").write_text(SCRIPT)
    done = run_mindspore([mindspore_python, "train.py"], cwd=directory, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return directory, done.stdout.splitlines()


def rows(directory, step):
    with open(directory / "rank0" / f"grad_summary_{step}.csv", newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_tables_and_signs_are_those_of_the_gradients(probed):
    directory, printed = probed
    assert len({line for line in printed if line.startswith("sum")}) == 1  # with and without, at every level
    assert len([line for line in printed if line.startswith("sum")]) == 4
    assert printed[-1].startswith("MsprobeException") and "the optimizer is a SequentialCell" in printed[-1]
    for level, middle in (
        ("L0", ["MD5"]),
        ("L1", []),
        ("L2", ["(-inf, -0.5]", "(-0.5, 0]", "(0, 0.5]", "(0.5, inf)", "=0"]),
    ):
        assert sorted(p.name for p in (directory / level / "rank0").glob("*.csv")) == [
            "grad_summary_0.csv",
            "grad_summary_2.csv",
        ]
        gradients = np.load(directory / "gradients2.npz")
        table = rows(directory / level, 2)
        assert [row["param_name"] for row in table] == [n for n in gradients if level != "L1" or "2." in n]
        for row in table:
            gradient = gradients[row["param_name"]]
            assert list(row) == ["param_name", *middle, "max", "min", "norm", "shape"]
            assert (float(row["max"]), float(row["min"])) == (gradient.max(), gradient.min())
            assert float(row["norm"]) == pytest.approx(np.linalg.norm(gradient.astype(np.float64)), rel=1e-6)
            assert row["shape"] == str(list(gradient.shape))
            if level == "L0":
                assert row["MD5"] == f"{zlib.crc32(gradient.tobytes()):08x}"
                continue
            signs = np.load(directory / level / "rank0" / "step2" / f"{row['param_name']}.npy")
            assert signs.dtype == bool and (signs == (gradient > 0)).all()
            if level == "L2":
                shares = [(gradient <= -0.5).mean(), ((gradient > -0.5) & (gradient <= 0)).mean()]
                shares += [((gradient > 0) & (gradient <= 0.5)).mean(), (gradient > 0.5).mean(), (gradient == 0).mean()]
                assert [float(row[name]) for name in middle] == pytest.approx(shares)
    assert not list((directory / "L0" / "rank0").glob("step*"))


def test_two_trainings_are_compared(probed, tmp_path):
    from msprobe.core.grad_probe.grad_compare import GradComparator

    directory, _ = probed
    GradComparator.compare_distributed(str(directory / "L1"), str(directory / "L2"), str(tmp_path))
    with open(tmp_path / "rank0" / "similarities.csv", newline="", encoding="utf-8-sig") as file:
        head, *lines = csv.reader(file)
    assert head == ["step", "0", "2"]
    assert [line[0] for line in lines] == ["2.weight", "2.bias", "summary"]
    assert all([float(value) for value in line[1:]] == [1.0, 1.0] for line in lines)

"""ConfigChecker on MindSpore: the pack is the one that mindstudio-probe makes of the same training."""

import json
import zipfile

import pytest
from launch import run_mindspore

TRAINING = """
import sys, numpy as np, mindspore as ms
from msprobe.core.config_check import ConfigChecker
ConfigChecker.apply_patches("mindspore")
ms.set_seed(1)
ms.ops.randn(2, 3)
np.random.rand(2)
class Net(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = ms.nn.Dense(4, 3)
    def construct(self, x, scale=None):
        return self.dense(x)
net = Net()
ConfigChecker(model=net, shell_path=[], output_zip_path=sys.argv[1], fmk="mindspore")
for _ in range(2):
    net(ms.Tensor(np.arange(8).reshape(2, 4).astype(np.float32)), scale=ms.Tensor([1, 2]))
"""


def packed(python, program, path):
    done = run_mindspore([python, program, path])
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_pack_is_that_of_the_earlier_tool(tmp_path, mindspore_python, old_mindspore_python):
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    ours = packed(mindspore_python, program, tmp_path / "ours.zip")
    theirs = packed(old_mindspore_python, program, tmp_path / "theirs.zip")
    assert set(ours) == set(theirs)
    for name in ours:
        if not name.startswith(("dataset", "weights")):
            continue
        a, b = (json.loads(side[name]) for side in (ours, theirs))
        if name.startswith("dataset"):
            a, b = ({**s["args"], **s["kwargs"]} for s in (a, b))
            # Of whole numbers mindstudio-probe keeps a whole mean.
            assert a["scale"].pop("mean") == 1.5 and b["scale"].pop("mean") == 1
        assert set(a) == set(b), name
        for key in a:
            assert a[key] == pytest.approx(b[key], rel=1e-6), (name, key)
    a, b = (json.loads(side["random/rank0.json"]) for side in (ours, theirs))
    assert set(b) - {"mindspore.manual_seed"} <= set(a)
    assert a["mindspore.set_seed"][0]["count"] == 1

"""Single tensors of a MindSpore script, with and without a static graph, and seed_all. One interpreter for all of it."""

import json

import numpy as np
import pytest
from launch import run_mindspore

SCRIPT = """
import json, os, random, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.mint.nn import functional as F
from msprobe.mindspore import MsprobeException, PrecisionDebugger, save, save_grad, seed_all
ms.set_context(mode=ms.PYNATIVE_MODE)
root = sys.argv[1]
found = {}

def draw():
    return [random.random(), float(np.random.rand()), ops.rand(3).asnumpy().tolist()]
seed_all(99); first = draw()
seed_all(99); second = draw()
seed_all(100); found["seed"] = [first, second, draw(), os.environ["PYTHONHASHSEED"]]
found["refused"] = []
for arguments in ({"seed": -1}, {"seed": 1.5}, {"mode": 1}, {"rm_dropout": None}):
    try:
        seed_all(**arguments)
    except MsprobeException as error:
        found["refused"].append(str(error))

debugger = PrecisionDebugger(task="tensor", level="debug", dump_path=root + "/debug")
def forward(x):
    y = x * 3
    PrecisionDebugger.save({"a": y, "b": [y + 1, 7, None]}, "value")
    PrecisionDebugger.save(y.asnumpy().sum().item(), "sum", save_backward=False)
    return (y * y).sum()
grad = ms.grad(forward)
for _ in range(2):
    found["gradient"] = grad(Tensor(np.array([1, 2], np.float32))).asnumpy().tolist()
    debugger.step()

def static(x):
    x = save_grad(root + "/static", "x", x)
    save(root + "/static", "values", {"x": x, "more": [x + 1, None], "half": x.astype(ms.bfloat16)})
    return (x * x).sum()
found["static"] = ms.grad(static)(Tensor(np.array([1, 2], np.float32))).asnumpy().tolist()
ms.hal.synchronize()

ones = Tensor(np.ones((64, 64), np.float32))
taken = F.dropout
before = ops.Dropout(0.5)(ones)[0].asnumpy()
seed_all(1, rm_dropout=True)
found["dropped"] = [float(before.min()), float(taken(ones, 0.5).asnumpy().min()),
                    float(nn.Dropout(p=0.5).set_train()(ones).asnumpy().min()),
                    float(ops.Dropout(0.5)(ones)[0].asnumpy().min())]
print("FOUND" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory, mindspore_python):
    """What the script printed, and the directory it wrote to."""
    root = tmp_path_factory.mktemp("saved")
    script = root / "script.py"  # the compiler reads the source
    script.write_text(SCRIPT)
    done = run_mindspore([mindspore_python, script, root], timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.split("FOUND")[1]), root


def test_save_writes_values_and_gradients(saved):
    found, root = saved
    assert found["gradient"] == [18.0, 36.0]
    for step in ("step0", "step1"):
        rank = root / "debug" / step / "rank"
        data = json.loads((rank / "debug.json").read_text())["data"]
        assert list(data) == ["value.0.debug", "sum.0.debug", "value_grad.0.debug"]
        assert data["value.0.debug"]["b"][1] == {"type": "int", "value": 7}
        tensors = rank / "dump_tensor_data"
        assert np.load(tensors / "value.0.debug.a.npy").tolist() == [3.0, 6.0]
        assert np.load(tensors / "value.0.debug.b.0.npy").tolist() == [4.0, 7.0]
        assert np.load(tensors / "value_grad.0.debug.a.npy").tolist() == [6.0, 12.0]


def test_static_save_keeps_the_gradient(saved):
    found, root = saved
    assert found["static"] == [2.0, 4.0]
    arrays = {path.name.rsplit("_", 1)[0]: np.load(path).tolist() for path in (root / "static").rglob("*.npy")}
    assert arrays == {
        "values.x_float32": [1.0, 2.0],
        "values.more.0_float32": [2.0, 3.0],
        "values.half_float32": [1.0, 2.0],
        "x_grad_float32": [2.0, 4.0],
    }


def test_seed_all(saved):
    first, second, other, hash_seed = saved[0]["seed"]
    assert first == second and all(a != b for a, b in zip(first, other)) and hash_seed == "100"
    assert [text.count("argument") for text in saved[0]["refused"]] == [1, 1, 1, 1], saved[0]["refused"]


def test_rm_dropout(saved):
    before, *after = saved[0]["dropped"]
    assert before == 0.0 and after == [1.0, 1.0, 1.0]

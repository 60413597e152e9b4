"""`msprobe acc_check` and op_generate of a dump of MindSpore, with numpy as the reference and no torch."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run


def leaf(values, name=None, **changes):
    entry = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(values.shape)}
    entry |= {"Max": float(values.max()), "Min": float(values.min()), **changes}
    return {**entry, "data_name": name} if name else entry


def table(folder, what):
    (path,) = folder.glob(f"accuracy_checking_{what}_*.csv")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    return rows[0], {row[0]: row[1:] for row in rows[1:]}


@pytest.fixture(scope="module")
def checked(tmp_path_factory, mindspore_python):
    root = tmp_path_factory.mktemp("acc_check")
    files = root / "dump_tensor_data"
    files.mkdir()
    x = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    np.save(files / "x.npy", x)
    np.save(files / "large.npy", x * 1000)
    large = leaf(x * 1000, "large.npy")
    kept, drawn = leaf(x, "x.npy"), leaf(x)
    number = {"type": "float", "value": 0.5}
    data = {
        "Mint.tanh.0.forward": {"input_args": [kept], "input_kwargs": {}, "output": [kept]},
        "Mint.mul.0.forward": {"input_args": [kept, kept], "input_kwargs": {}, "output": [kept]},
        "Mint.mul.0.backward": {"input": [kept], "output": [kept, kept]},
        "Mint.mul.1.forward": {"input_args": [large, large], "input_kwargs": {}, "output": [large]},
        "Tensor.add.0.forward": {"input_args": [drawn, number], "input_kwargs": {}, "output": [drawn]},
        "Functional.transpose.0.forward": {"input_args": [kept, {"type": "tuple"}], "input_kwargs": {}, "output": []},
        "Mint.exp.0.forward": {"input_args": [leaf(x, "../x.npy")], "input_kwargs": {}, "output": [kept]},
        "Mint.sin.0.forward": {"input_args": [{**kept, "shape": [3]}], "input_kwargs": {}, "output": [kept]},
        "Mint.set_seed.0.forward": {"input_args": [], "input_kwargs": {}, "output": []},
        "Tensor.sum.0.forward": {"input_args": [None], "input_kwargs": {}, "output": []},
    }
    head = {"task": "tensor", "level": "L1", "framework": "mindspore", "dump_data_dir": str(files)}
    (root / "dump.json").write_text(json.dumps({**head, "data": data}))
    (root / "config.json").write_text(json.dumps({"acc_check": {"error_data_path": str(root / "kept")}}))
    options = ["-save_error_data", "-config", str(root / "config.json")]
    done = run(
        ["acc_check", "-api_info", str(root / "dump.json"), "-o", str(root / "out"), "--json", *options],
        env={"MSPROBE_PYTHON": str(mindspore_python)},
    )
    return root / "out", json.loads(done.stdout)


def test_tables(checked):
    """The columns of mindstudio-probe for MindSpore."""
    header, details = table(checked[0], "details")
    assert header[1:] == "Bench Dtype,Tested Dtype,Shape,Cosine,MaxAbsErr,MaxRelativeErr,Status,Message".split(",")
    assert details["Mint.mul.0.forward.output.0"][:3] == ["Float64", "Float32", "(64, 32)"]
    assert details["Mint.mul.0.backward.output.1"][6] == "pass"
    results = table(checked[0], "result")[1]
    assert results["Mint.mul.0"][:2] == ["pass", "pass"] and results["Tensor.add.0"][0] == "pass"


def test_verdicts(checked):
    """MindSpore's tanh on the CPU has half of its digits, which its own standard passes."""
    against = table(checked[0], "float64")[1]
    assert against["Mint.tanh.0.forward.output.0"][1] == "suspicious"
    assert float(against["Mint.tanh.0.forward.output.0"][5]) > 100
    assert against["Mint.mul.0.forward.output.0"][1] == "right"
    assert against["Mint.mul.0.backward.output.0"][1] in ("right", "round-off")
    assert against["Tensor.add.0.forward.output.0"][1] in ("right", "round-off")
    assert checked[1]["suspects"] == ["Mint.tanh.0"] and checked[1]["verdicts"]["wrong"] == 0


def test_data_of_calls_that_do_not_pass(checked):
    """The standard of mindstudio-probe fails a large product whose every digit is right."""
    results = table(checked[0], "result")[1]
    assert [name for name, row in results.items() if row[0] == "error"] == ["Mint.mul.1"]
    (kept,) = (checked[0].parent / "kept").glob("ut_error_data*")
    names = {path.name for path in kept.iterdir()}
    sides = {f"Mint.mul.1.forward.{part}.0.npy" for part in ("input", "output.bench", "output.device")}
    assert names == sides | {"Mint.mul.1.forward.input.1.npy"}
    ours, truth = (np.load(kept / f"Mint.mul.1.forward.output.{side}.0.npy") for side in ("device", "bench"))
    assert ours.dtype == np.float32 and truth.dtype == np.float64
    np.testing.assert_allclose(ours, truth, rtol=1e-7)


def test_calls_that_cannot_be_made(checked):
    results = table(checked[0], "result")[1]
    why = {name: row[2] for name, row in results.items() if row[0] == "SKIP"}
    assert "is not a file of the dump" in why["Mint.exp.0"]
    assert "another shape" in why["Mint.sin.0"]
    assert "no function Mint.set_seed" in why["Mint.set_seed.0"]
    assert "does not have its tensor" in why["Tensor.sum.0"]
    assert "of the type tuple is not known" in why["Functional.transpose.0"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A dump of calls of each kind of function and argument."""
    root = tmp_path_factory.mktemp("op_generate")
    files = root / "dump_tensor_data"
    files.mkdir()
    x = np.random.default_rng(2).standard_normal((64, 32)).astype(np.float32)
    np.save(files / "x.npy", x)
    np.save(files / "ids.npy", np.array([1, 0, 3], dtype=np.int64))
    kept = leaf(x, "x.npy")
    ids = {"type": "mindspore.Tensor", "dtype": "Int64", "shape": [3], "Max": 3, "Min": 0, "data_name": "ids.npy"}
    half, one = {"type": "mindspore.dtype", "value": "BFloat16"}, {"type": "int", "value": 1}
    calls = {
        "Mint.tanh.0": ([kept], {}),
        "Mint.softmax.0": ([kept], {"dim": {"type": "int", "value": -1}}),
        "MintFunctional.silu.0": ([kept], {}),
        "Functional.cat.0": ([[kept, kept], one], {}),
        "Tensor.to.0": ([kept, half], {}),
        "Tensor.index_select.0": ([kept, {"type": "int", "value": 0}, ids], {}),
        "Mint.nothing.0": ([kept], {}),
        "Functional.tensor_dump.0": ([{"type": "str", "value": "x"}, kept], {}),
        "Mint.exp.0": ([leaf(x)], {}),
        "Tensor.add.0": ([kept, {"type": "Odd", "value": 1}], {}),
        "Primitive.add.0": ([kept, kept], {}),
    }
    data = {}
    for name, (args, kwargs) in calls.items():
        data[f"{name}.forward"] = {"input_args": args, "input_kwargs": kwargs, "output": [kept]}
    data["Mint.softmax.0.backward"] = {"input": [kept], "output": [kept]}
    data["MintFunctional.silu.0.backward"] = {"input": [None], "output": [kept]}
    head = {"task": "tensor", "level": "L1", "framework": "mindspore", "dump_data_dir": str(files)}
    (root / "dump.json").write_text(json.dumps({**head, "data": data}))
    return root / "dump.json"


def generate(dump, folder, python, code=0, **config):
    (folder / "config_op.json").write_text(json.dumps({"dump_json_path": str(dump), **config}))
    arguments = ["op_generate", "-i", str(folder / "config_op.json"), "-o", str(folder / "out"), "--json"]
    done = run(arguments, env={"MSPROBE_PYTHON": str(python)}, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else json.loads(done.stdout)


def ulps(printed, side):
    (line,) = [line for line in printed.splitlines() if line.startswith(side)]
    return float(line.split("of one element ")[1].split(" ulp")[0])


def test_scripts_of_calls(recorded, tmp_path, mindspore_python):
    """They are run before they are handed out, and run again without msprobe; numpy tells of a kernel with half of its digits."""
    real = {"data_mode": "real_data"}
    tanh = generate(recorded, tmp_path, mindspore_python, api_name="Mint.tanh.0", **real)
    assert ulps(tanh["printed"], "output 0: Float32 [64, 32]") > 10
    softmax = generate(recorded, tmp_path, mindspore_python, api_name="Mint.softmax.0", propagation="backward", **real)
    shares = [float(line.split("of the largest value ")[1].split(",")[0]) for line in softmax["printed"].splitlines()]
    assert len(shares) == 2 and all(0 < share < 1e-5 for share in shares)
    alone = [str(mindspore_python), "-I", softmax["script"], "CPU"]
    again = subprocess.run(alone, capture_output=True, text=True, check=True, env={"GLOG_v": "3"})
    assert again.stdout == softmax["printed"]
    # What the script asks of a process on the CPU where the device is another.
    subprocess.run([*alone, str(tmp_path / "truth.npz")], check=True, capture_output=True)
    with np.load(tmp_path / "truth.npz") as found:
        assert {key: found[key].dtype.name for key in found} == {"o0000": "float64", "g0000": "float64"}
        x = np.load(recorded.parent / "dump_tensor_data" / "x.npy").astype(np.float64)
        np.testing.assert_allclose(found["o0000"], np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "least", "most"), [("Functional.cat.0", 0, 0), ("Tensor.to.0", 0.1, 0.5), ("Tensor.index_select.0", 0, 0)]
)
def test_scripts_of_arguments(recorded, tmp_path, mindspore_python, call, least, most):
    """Lists of tensors, dtypes, integers; drawn values."""
    made = generate(recorded, tmp_path, mindspore_python, api_name=call, random_seed=5, iter_times=2)
    assert least <= ulps(made["printed"], "output 0") <= most
    assert "import msprobe" not in Path(made["script"]).read_text()


def test_scripts_that_cannot_be(recorded, tmp_path, mindspore_python):
    def refused(name, **config):
        text = generate(recorded, tmp_path, mindspore_python, code=3, api_name=name, **config)
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
        return text

    assert "tensor_dump is no function that a script may call" in refused("Functional.tensor_dump.0")
    assert "the dump holds no values of input.0: use random_data" in refused("Mint.exp.0", data_mode="real_data")
    assert "an argument of type Odd cannot be rebuilt" in refused("Tensor.add.0")
    assert "plain MindSpore has no functions of kind Primitive" in refused("Primitive.add.0")
    assert "has no call Mint.tanh.0.backward" in refused("Mint.tanh.0", propagation="backward")
    assert "has not all gradients that come in" in refused("MintFunctional.silu.0", propagation="backward")
    assert "the script does not run, and is not kept: AttributeError" in refused("Mint.nothing.0")
    without = generate(recorded, tmp_path, sys.executable, code=3, api_name="Mint.tanh.0")
    assert "has no mindspore: set MSPROBE_PYTHON to the Python that has it" in without

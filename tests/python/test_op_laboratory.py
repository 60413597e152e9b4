"""Bounds of functions, on the command line and as the lines of tests that `msprobe tolerance` prints; scripts of single calls."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

ENV = {"MSPROBE_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}


def command(*arguments, code=0, cwd=None):
    done = run([str(a) for a in arguments], check=False, env=ENV, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def holds(line, **names):
    """Whether a printed line passes."""
    try:
        exec(line, {"torch": torch, **names})
    except AssertionError:
        return False
    return True


def test_lines_of_functions():
    """The line passes torch's kernels on values of all sizes, and no kernel that loses digits."""
    x = torch.cat([torch.randn(20_000), torch.randn(20_000) * 1e-4])
    for op in ("exp", "tanh", "log1p", "erfc", "sigmoid"):
        own = getattr(torch, op)
        y = x.abs() if op == "log1p" else x
        (told,) = json.loads(command("tolerance", op, "--json"))
        assert told["rule"] == "ulp" and "rtol" in told["line"]
        expected = own(y.double())
        assert holds(told["line"], actual=own(y), expected=expected, x=y)
        assert not holds(told["line"], actual=own(y) * (1 + 1e-6), expected=expected, x=y)
    # Results that lose digits by nature are held to the size of the input.
    (told,) = json.loads(command("tolerance", "tanhshrink", "--json"))
    actual, expected = (torch.nn.functional.tanhshrink(v) for v in (x, x.double()))
    assert holds(told["line"], actual=actual, expected=expected, x=x) and "x.abs()" in told["line"]
    assert "\n" in command("tolerance", "exp", "gelu", "--dtype", "bfloat16")
    (told,) = json.loads(command("tolerance", "tanh", "--backward", "--json"))
    assert told["rule"] == "saved" and "gradient" in told["line"]


def test_lines_of_sums():
    a, b = torch.randn(40, 512), torch.randn(512, 30)
    (told,) = json.loads(command("tolerance", "mm", "--shape", "40x512,512x30", "--json"))
    assert told["terms"] == 512
    expected, short = a.double() @ b.double(), torch.mm(a[:, :-1], b[:-1])
    assert holds(told["line"], actual=torch.mm(a, b), expected=expected, inputs=(a, b))
    assert not holds(told["line"], actual=short, expected=expected, inputs=(a, b))
    assert command("tolerance", "mm", "--terms", "512") == command("tolerance", "mm", "--shape", "40x512,512x30")
    weight = torch.randn(6, 8, 3, 3)
    x = torch.randn(2, 8, 9, 9)
    (told,) = json.loads(command("tolerance", "conv2d", "--shape", "2x8x9x9,6x8x3x3", "--json"))
    expected = torch.nn.functional.conv2d(x.double(), weight.double())
    assert told["terms"] == 72
    actual = torch.nn.functional.conv2d(x, weight)
    assert holds(told["line"], actual=actual, expected=expected, inputs=(x, weight))
    (told,) = json.loads(command("tolerance", "layer_norm", "--shape", "4x256", "--json"))
    assert told["rule"] == "norm"
    (told,) = json.loads(command("tolerance", "relu", "--json"))
    assert told["rule"] == "exact"


def test_what_tolerance_does_not_know():
    assert "give --shape" in command("tolerance", "matmul", code=2)
    assert "no bound is known for lstm" in command("tolerance", "lstm", code=2)
    assert "was not measured" in command("tolerance", "matmul", "--backward", code=2)
    assert "sizes such as 64x512" in command("tolerance", "mm", "--shape", "4x-1", code=2)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    root = tmp_path_factory.mktemp("op_generate")
    run_python([HERE / "acc_check_scenario.py", root, "tensor"])
    return next(root.rglob("dump.json"))


@pytest.mark.parametrize(
    ("call", "settings", "shown"),
    [
        ("Functional.linear.0", {"propagation": "backward", "data_mode": "real_data"}, "gradient 2"),
        ("Torch.softmax.0.forward", {"iter_times": 2, "random_seed": 7}, "output 0: torch.float32 [4, 16]"),
    ],
)
def test_scripts_of_calls(dump, tmp_path, call, settings, shown):
    """The script was run before it is handed out, and runs again without msprobe."""
    config = {"dump_json_path": str(dump), "api_name": call, "extract_api_path": str(tmp_path / "one.json"), **settings}
    (tmp_path / "config_op.json").write_text(json.dumps(config))
    summary = json.loads(command("op_generate", "-i", tmp_path / "config_op.json", "-o", tmp_path / "out", "--json"))
    assert shown in summary["printed"]
    assert run_python([summary["script"]]).stdout == summary["printed"]
    full = call.removesuffix(".forward")
    assert set(json.loads((tmp_path / "one.json").read_text())) == {f"{full}.forward", f"{full}.backward"}


def test_scripts_that_cannot_be(dump, tmp_path):
    def generate(**config):
        (tmp_path / "config_op.json").write_text(json.dumps({"dump_json_path": str(dump), **config}))
        return command("op_generate", "-i", tmp_path / "config_op.json", "-o", tmp_path / "out", code=3)

    assert "has no call Torch.tanh.9.forward" in generate(api_name="Torch.tanh.9")
    assert '"api_name" must name a call' in generate(api_name="../x")
    assert '"dump_json_path" must be' in generate(api_name="Torch.tanh.0", dump_json_path="")
    assert '"iter_times" must be a whole number from 1 to 1000' in generate(api_name="Torch.tanh.0", iter_times=0)
    assert '"propagation" must be "forward" or "backward"' in generate(api_name="Torch.tanh.0", propagation="both")
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_overflows_made_again(tmp_path):
    """The inputs are the cause of one, and the kernel of the other; a third does not come again."""
    files = tmp_path / "dump_tensor_data"
    files.mkdir()
    data = {}
    values = {"exp.0": torch.tensor([800.0, 1.0]), "softplus.0": torch.tensor([1.0, 2.0]), "tanh.0": torch.ones(2)}
    for name, tensor in values.items():
        torch.save(tensor, files / f"{name}.pt")
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "requires_grad": False}
        owner = "Functional" if name.startswith("soft") else "Torch"
        data[f"{owner}.{name}.forward"] = {
            "input_args": [{**leaf, "Max": 1.0, "Min": 0.0, "data_name": f"{name}.pt"}],
            "input_kwargs": {},
            "output": [{**leaf, "Max": "inf" if name == "exp.0" else math.inf, "Min": 0.0}],
        }
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(files)}
    (tmp_path / "dump.json").write_text(json.dumps({**head, "data": data}))
    (tmp_path / "own").mkdir()
    kernel = "from torch.nn import functional\nfunctional.softplus = lambda x: x / 0\n"
    (tmp_path / "own" / "sitecustomize.py").write_text(kernel)
    arguments = ["run_overflow_check", "-api_info", str(tmp_path / "dump.json"), "-j", "--json"]
    found = json.loads(run(arguments, env={**ENV, "PYTHONPATH": str(tmp_path / "own")}).stdout)["overflowed"]
    assert [(entry["name"], entry["overflow"]) for entry in found] == [
        ("Torch.exp.0", "expected"),
        ("Functional.softplus.0", "not expected"),
        ("Torch.tanh.0", "does not come again"),
    ]

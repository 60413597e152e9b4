"""PrecisionChecker and check_kernels: compiled modules and kernels beside eager and float64."""

import csv
import json
import sys
from pathlib import Path

import pytest
import torch
from msprobe.pytorch.compile_accuracy_checker.adapter import check_release
from msprobe.pytorch.compile_accuracy_checker.generated import Generated
from msprobe.pytorch.compile_accuracy_checker.precision_checker import PrecisionChecker
from msprobe.pytorch.compile_accuracy_checker.results import COLUMNS
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

CODE = """
cpp_fused_exp_0 = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t*'], '''...''')
def call(args):
    extern_kernels.mm(primals_1, reinterpret_tensor(primals_2, (2, 2), (1, 2), 0), out=buf0)
    cpp_fused_exp_0(buf0, buf1, primals_3)
"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 8), nn.Sequential(nn.GELU(), nn.Linear(8, 8)), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


def step(model):
    loss = model(torch.linspace(-1, 1, 12).view(3, 4)).square().sum()
    loss.backward()
    return loss


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *body = csv.reader(file)
    assert header == COLUMNS
    return [(row[0], row[1], row[3]) for row in body]


@pytest.mark.parametrize("single", [True, False])
def test_modules(tmp_path, single):
    torch.manual_seed(0)
    model = Net()
    checker = PrecisionChecker(single_pass=single)
    assert checker.wrap_all_children(model) is model
    checker.ignore(model.last)
    result = checker.compare(step, model)
    checker.report(result, csv_path=str(tmp_path / "out.csv"))
    found = rows(tmp_path / "out.csv")
    assert found[0] == ("LOSS", "loss", "PASS") and result.all_pass
    assert ("last", "note", "SKIP") in found and {row[0] for row in found} == {
        "LOSS",
        "first",
        "second.0",
        "second.1",
        "last",
    }
    assert ("second.0", "fwd_output", "PASS") in found and ("second.0", "grad_input", "PASS") in found
    assert (("first", "fwd_input", "PASS") in found) is not single
    assert (result.loss_diff == 0) is not single
    assert type(model.first) is nn.Linear


def test_a_wrong_module_fails(tmp_path):
    class Wrong(nn.Module):
        def forward(self, x):
            return x * (1.01 if torch.compiler.is_compiling() else 1.0)

    model = nn.Sequential(nn.Linear(4, 4), Wrong())
    checker = PrecisionChecker()
    checker.wrap_by_policy(model, (Wrong,))
    result = checker.collect(step(checker.install(model)))
    assert [(d.name, d.fwd_output[0].allclose) for d in result.diffs] == [("1", False)] and not result.all_pass
    assert result.diffs[0].fwd_output[0].max_rel == pytest.approx(0.01, rel=0.01)
    with pytest.raises(RuntimeError, match="single_pass=True"):
        PrecisionChecker(single_pass=False).install(model)


def test_calls_in_generated_code():
    product, fused = Generated(CODE).calls
    assert (product.kernel, product.generated, product.outputs) == ("extern_kernels.mm", False, ("buf0",))
    assert product.names == ("primals_1", "primals_2", "buf0")
    assert (fused.kernel, fused.generated, fused.names, fused.outputs) == (
        "cpp_fused_exp_0",
        True,
        ("buf0", "buf1", "primals_3"),
        ("buf1",),
    )


def test_other_releases_are_refused(monkeypatch):
    from msprobe._capture.errors import MsprobeException

    monkeypatch.setattr(torch, "__version__", "2.1.0")
    with pytest.raises(MsprobeException, match=r"knows the kernels of PyTorch 2\.13, this is 2\.1\.0"):
        check_release()


def model_of_kernels(x, w):
    y = torch.nn.functional.gelu(x @ w) + 1
    return torch.softmax(y, -1).sum(0)


def kernel_inputs():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).requires_grad_() for size in ((8, 16), (16, 16))]


@pytest.mark.deep
def test_kernels(monkeypatch):
    """A clean model has no wrong kernel; with a wrong lowering of exp the kernel, its node and its line are named."""
    import torch._inductor.lowering
    from msprobe.pytorch.compile_accuracy_checker import check_kernels

    clean = check_kernels(model_of_kernels, *kernel_inputs())
    assert {row.direction for row in clean} == {"forward", "backward"}
    assert not [row for row in clean if row.verdict in ("compiled wrong", "not known")], clean
    lowerings, aten = torch._inductor.lowering.lowerings, torch.ops.aten
    right, times = lowerings[aten.exp.default], lowerings[aten.mul.Tensor]
    monkeypatch.setitem(lowerings, aten.exp.default, lambda x: times(right(x), 1.001))
    wrong = [row for row in check_kernels(model_of_kernels, *kernel_inputs()) if row.verdict == "compiled wrong"]
    assert wrong and all("exp" in row.nodes for row in wrong) and wrong[0].kernel.startswith("cpp_fused_")
    assert any(line.startswith("test_compiled_kernels.py:") for line in wrong[0].lines)


MODEL = """import torch

def make():
    lowering, aten = torch._inductor.lowering, torch.ops.aten
    right, times = lowering.lowerings[aten.exp.default], lowering.lowerings[aten.mul.Tensor]
    lowering.lowerings[aten.exp.default] = lambda x: times(right(x), 1.001)
    return (lambda x: torch.exp(x) + 1), torch.linspace(0, 1, 32)

def number():
    return 3

def fails():
    raise RuntimeError("no data")
"""


@pytest.mark.deep
def test_command(tmp_path):
    (tmp_path / "model.py").write_text(
        MODEL.replace("import torch", "import torch\nimport torch._inductor.lowering", 1)
    )

    def command(what, *arguments, code=0):
        done = run(
            ["check_kernels", what, *arguments], check=False, cwd=tmp_path, env={"MSPROBE_PYTHON": sys.executable}
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    (row,) = json.loads(command("model.py:make", "--forward", "--json"))["results"]
    assert (row["verdict"], row["blamed"], row["direction"]) == ("compiled wrong", "exp", "forward")
    assert row["kernel"].startswith("cpp_fused_") and row["lines"] == ["model.py:8"] and row["compiled"] > 100
    text = command("model.py:make", "--forward")
    assert "1 results of kernels" in text and " 1 wrong" in text and "exp is compiled wrong" in text
    assert "returns a int; allowed: a function or model" in command("model.py:number", code=3)
    assert "model.py has no function other" in command("model.py:other", code=3)
    assert "no data" in command("model.py:fails", code=3)


def test_command_without_a_function(tmp_path):
    def refused(what, code):
        done = run(["check_kernels", what], check=False, cwd=tmp_path, env={"MSPROBE_PYTHON": sys.executable})
        assert done.returncode == code and done.stdout == ""
        return done.stderr

    assert "give a file and a function in it, such as model.py:make" in refused("model.py", 2)
    assert "absent.py" in refused("absent.py:make", 3)

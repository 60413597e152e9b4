"""Parts of the process of acc_check: the truth beyond float64, and what rounding after each step of a call explains."""

import csv
import importlib
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def parts(monkeypatch):
    """The modules as the process has them."""
    monkeypatch.syspath_prepend(str(ROOT / "python" / "msprobe"))
    names = ("_replay", "_calls", "_steps", "_extended")
    found = {name: importlib.import_module(name) for name in names}
    for module in found.values():
        module.torch = torch
    yield found
    for name in names:
        sys.modules.pop(name)


def test_rounding_at_random(parts):
    """Results of the dtype stay as they are; others become one of their two neighbours."""
    steps, generator = parts["_steps"], torch.Generator().manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        kept = torch.randn(500).to(dtype).double()
        assert torch.equal(steps.rounded(kept, dtype, generator), kept)
        wide = torch.cat(
            [torch.randn(500, dtype=torch.float64), torch.tensor([1e-40, -1e-40, 0.0], dtype=torch.float64)]
        )
        draws = torch.stack([steps.rounded(wide, dtype, generator) for _ in range(40)])
        assert torch.equal(draws, draws.to(dtype).double())
        low, high = draws.amin(0), draws.amax(0)
        assert ((low <= wide) & (wide <= high)).all()
        assert torch.equal(torch.nextafter(low.float().to(dtype).float(), high.float()) > low.float(), high > low)
        apart = (high - low)[:500] / wide[:500].abs()
        assert apart.max() <= torch.finfo(dtype).eps


def test_steps_of_composites(parts):
    """What a composite function is away in half precision is explained; a single kernel has nothing between its input and its result."""
    steps = parts["_steps"]
    x = torch.randn(2000, generator=torch.Generator().manual_seed(1)).half()

    def made(function):
        def run(mode):
            with mode:
                return [function(x.double())], {}

        return steps.Steps(run, torch.float16)

    for function, composite in ((functional.softsign, True), (torch.exp, False)):
        truth, ours = function(x.double()), function(x).double()
        distance = made(function).distance("forward", 0, truth, torch.float16)
        ulp = truth.abs() * 2.0**-10
        assert ((ours - truth).abs() <= ulp + distance).all()
        assert bool((distance > 0.05 * ulp).any()) is composite
        assert distance.max() < 10 * ulp.max()


def test_a_step_that_overflows(parts):
    steps, x = parts["_steps"], torch.tensor([1.0, 12.0], dtype=torch.float16)

    def run(mode):
        with mode:
            return [torch.log(torch.exp(x.double()))], {}

    found, truth = steps.Steps(run, torch.float16), x.double()
    assert found.beyond == "aten::exp"
    assert found.overflows("forward", 0, torch.log(torch.exp(x)), truth)
    assert not found.overflows("forward", 0, torch.tensor([float("inf"), 12.0]).half(), truth)


def test_truth_beyond_float64(parts):
    """A scalar product that cancels out in float64, against fractions; gradients against those of a shifted function."""
    extended = parts["_extended"]
    extended.start()
    widen = extended.widener()
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(64, generator=generator, dtype=torch.float64) for _ in range(2))
    b[-1] = -float(
        sum(Fraction(x) * Fraction(y) for x, y in zip(a[:-1].tolist(), b[:-1].tolist())) / Fraction(a[-1].item())
    )
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist()))
    high, low = extended.halves_of(torch.dot(widen(a), widen(b)))
    found = Fraction(high.item()) + Fraction(low.item())
    size = sum(abs(Fraction(x) * Fraction(y)) for x, y in zip(a.tolist(), b.tolist()))
    assert abs(found - exact) < size * Fraction(1, 2**62)
    assert abs(Fraction(torch.dot(a, b).item()) - exact) > size * Fraction(1, 2**60)
    for function in (
        lambda t: torch.softmax(t, -1),
        functional.gelu,
        lambda t: functional.layer_norm(t, (8,)),
        functional.silu,
    ):
        x = torch.randn((4, 8), generator=generator, dtype=torch.float64)
        results = []
        for leaf in (x.clone().requires_grad_(), widen(x).requires_grad_()):
            out = function(leaf)
            results.append([out.detach(), torch.autograd.grad(out.square().sum(), leaf)[0]])
        for ours, theirs in zip(*results):
            high, low = extended.halves_of(theirs)
            assert torch.allclose(ours, high, rtol=1e-13, atol=1e-14) and low.abs().max() > 0
            assert (low.abs() <= high.abs() * 2.0**-53).all()


SITE = """
import torch
own = torch.exp
torch.exp = lambda x: own(x.float()).double()
"""


def test_verdicts_on_float64(tmp_path):
    """Right kernels, one that computes in float32, and one of which the truth is not known."""
    files = tmp_path / "dump" / "dump_tensor_data"
    files.mkdir(parents=True)
    data = {}
    calls = {
        "Torch.exp.0": (torch.exp, (torch.randn(5, 7).double(),)),
        "Torch.tanh.0": (torch.tanh, (torch.randn(5, 7).double(),)),
        "Functional.linear.0": (functional.linear, (torch.randn(5, 7).double(), torch.randn(3, 7).double())),
        "Functional.conv1d.0": (functional.conv1d, (torch.randn(1, 2, 9).double(), torch.randn(3, 2, 3).double())),
    }
    for full, (function, inputs) in calls.items():
        tensors = {f"forward.input.{i}": t for i, t in enumerate(inputs)} | {"forward.output.0": function(*inputs)}
        tensors["backward.input.0"] = torch.ones_like(tensors["forward.output.0"])
        leaves = {}
        for name, tensor in tensors.items():
            torch.save(tensor, files / f"{full}.{name}.pt")
            leaves[name] = {"type": "torch.Tensor", "dtype": "torch.float64", "shape": list(tensor.shape)}
            leaves[name] |= {"requires_grad": True, "data_name": f"{full}.{name}.pt"}
        data[f"{full}.forward"] = {
            "input_args": [leaves[f"forward.input.{i}"] for i in range(len(inputs))],
            "input_kwargs": {},
            "output": [leaves["forward.output.0"]],
        }
        data[f"{full}.backward"] = {"input": [leaves["backward.input.0"]], "output": []}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(files)}
    (tmp_path / "dump" / "dump.json").write_text(json.dumps({**head, "data": data}))
    (tmp_path / "sitecustomize.py").write_text(SITE)
    env = {"MSPROBE_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
    done = run(
        ["acc_check", "-api_info", tmp_path / "dump" / "dump.json", "-o", tmp_path / "out", "-d", "cpu", "--json"],
        env=env,
    )
    summary = json.loads(done.stdout)
    with open(summary["float64"], encoding="utf-8-sig", newline="") as file:
        rows = {row[0]: row for row in csv.reader(file)}
    assert rows["Torch.exp.0.forward.output.0"][2] == "wrong" and summary["suspects"] == ["Torch.exp.0"]
    right = (
        "Torch.tanh.0.forward.output.0",
        "Functional.linear.0.forward.output.0",
        "Functional.linear.0.backward.output.1",
    )
    assert {rows[name][2] for name in right} <= {"right", "round-off"}
    assert 0 < float(rows[right[0]][6]) < 4 and rows[right[1]][8] == "terms"
    unknown = rows["Functional.conv1d.0.forward.output.0"]
    assert unknown[2] == "unknown" and "no truth beyond float64: no rule for aten::convolution" in unknown[8]

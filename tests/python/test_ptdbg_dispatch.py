"""PtdbgDispatch: figures of mindstudio-probe 8.1.1, bits of the training, wrong kernels, files of each dump mode.

ptdbg_figures.json has what 8.1.1 says of the pairs of ptdbg_pairs.py.
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from launch import HERE
from msprobe.pytorch import MsprobeException, PtdbgDispatch
from msprobe.pytorch.online_dispatch import standard
from ptdbg_pairs import pairs
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

FIGURES = json.loads((HERE / "ptdbg_figures.json").read_text())
MESSAGES = {
    "reference": (standard.ODD_REFERENCE,),
    "result": (standard.ODD_RESULT,),
    "shapes": (standard.SHAPES, standard.EMPTY),
    None: (None,),
}


def table(run, name):
    (path,) = Path(run.root_path).glob(f"accuracy_checking_{name}_*.csv")
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def results(run):
    return {row["API name"]: row["Forward Test Success"] for row in table(run, "result")}


def files(run, side):
    return {path.name: np.load(path) for path in (Path(run.root_path) / side).iterdir()}


def test_figures_of_pairs():
    for (ours, truth), (*figures, passes, kind) in zip(pairs(), FIGURES, strict=True):
        found = standard.judge(ours, truth)
        assert (found.passes, [found.message]) == (passes, [m for m in MESSAGES[kind] if m == found.message])
        assert [
            found.error_balance,
            found.max_abs,
            found.max_abs_index,
            found.max_rel,
            found.max_rel_index,
            found.balance_limit,
            found.limit,
        ] == figures


def train():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.GELU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(288, 16),
        nn.LayerNorm(16),
    )
    attention, cell = nn.MultiheadAttention(16, 2, batch_first=True), nn.GRU(16, 16, batch_first=True)
    parameters = [*model.parameters(), *attention.parameters(), *cell.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2, foreach=True)
    losses = []
    for _ in range(2):
        y = model(torch.randn(4, 3, 8, 8))[:, None, :].expand(4, 5, 16)
        y, _ = attention(*[cell(y)[0]] * 3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = functional.scaled_dot_product_attention(*[y[:, None]] * 3)[:, 0]
        loss = functional.cross_entropy(y.float().mean(1), torch.arange(4))
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [*losses, *parameters, *model.buffers(), torch.get_rng_state()]


def test_training_keeps_its_bits(tmp_path):
    bare = train()
    with PtdbgDispatch(dump_mode="auto", dump_path=tmp_path, tag="small", process_num=2) as run:
        watched = train()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(watched, bare, strict=True))
    found = results(run)
    assert Path(run.root_path).name.startswith("msprobe_small_rank0_") and len(found) > 150
    names = {name.rsplit("_", 2)[0] for name in found}
    assert {"convolution_backward", "native_batch_norm", "addmm", "_foreach_addcdiv_", "_log_softmax"} <= names
    # What draws, only looks at memory, or is memory that nobody wrote.
    assert not names & {"native_dropout", "bernoulli_", "randn", "view", "expand", "detach", "empty_like", "empty"}
    assert any("flash_attention" in name for name in names)  # without dropout
    assert {name for name, passes in found.items() if passes != "True"} == set()
    assert not files(run, "npu") and not files(run, "cpu")


@pytest.mark.filterwarnings("ignore:.*only once for all operators")
def test_a_wrong_kernel_is_named(tmp_path):
    """A kernel that is off in float32, forward; the reference is float64."""

    def tanh(x):
        y = torch.special.expit(2 * x) * 2 - 1
        return y * 1.001 if x.dtype == torch.float32 else y

    def neg_(x):
        return x.mul_(-1.001 if x.dtype == torch.float32 else -1)

    x = torch.linspace(1.2, 3, 64)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("tanh", tanh, "CPU")
        library.impl("neg_", neg_, "CPU")
        with PtdbgDispatch("auto", dump_path=tmp_path) as run:
            y = torch.tanh(x.clone().requires_grad_())
            (y * 2).sum().backward()
            torch.exp(x).neg_()
    assert {name for name, passes in results(run).items() if passes == "False"} == {"tanh_1_output", "neg__1_output"}
    rows = {row["Npu Name"]: row for row in table(run, "details")}
    wrong = rows["neg__1_output.forward.output.0"]
    assert float(wrong["max_rel_diff"]) == pytest.approx(1e-3, rel=1e-3) and wrong["max_rel_idx"] != ""
    assert (wrong["NPU Dtype"], wrong["Bench Dtype"], wrong["Shape"]) == ("torch.float32", "torch.float64", "(64,)")
    assert (wrong["error_thd"], wrong["Status"]) == (f"{2**-14:.14f}", "False")
    # Files are those of the calls that fail; the input is what it was before the call.
    given = files(run, "npu")
    assert {name.split("_")[0] for name in given} == {"tanh", "neg"}
    assert np.array_equal(given["neg__1_input.0.npy"], torch.exp(x).numpy())
    assert np.array_equal(files(run, "cpu")["neg__1_output.npy"], -torch.exp(x).double().numpy())


def test_calls_that_overwrite(tmp_path):
    x, parts = torch.arange(12.0).view(3, 4), [torch.ones(3), torch.full((2,), 2.0)]
    with PtdbgDispatch(dump_mode="list", api_list=["add_", "_foreach_mul_"], dump_path=tmp_path) as run:
        x.add_(x, alpha=2).mul_(0.5)
        torch.sub(x, 1, out=x)
        torch._foreach_mul_(parts, 3.0)
        functional.batch_norm(x, x.mean(0), torch.ones(4), training=True)
    assert set(results(run).values()) == {"True"}
    assert [row["Npu Name"] for row in table(run, "details") if "foreach" in row["Npu Name"]] == [
        "_foreach_mul__1_output.forward.output.0",
        "_foreach_mul__1_output.forward.output.1",
    ]
    given, truth = files(run, "npu"), files(run, "cpu")
    assert set(truth) == {"add__1_output.npy", "_foreach_mul__1_output.0.npy", "_foreach_mul__1_output.1.npy"}
    assert given["add__1_input.0.npy"].tolist() == torch.arange(12.0).view(3, 4).tolist()
    assert (
        given["add__1_input.1.npy"].tolist() == given["add__1_input.0.npy"].tolist()
        and given["add__1_input_alpha.npy"] == 2
    )
    assert given["_foreach_mul__1_input.0.1.npy"].tolist() == [2, 2] and truth["add__1_output.npy"].dtype == np.float64


def test_dtypes(tmp_path):
    """Limits are those of the dtype of the training; conversions are exact; arithmetic of numbers is not widened."""
    x = torch.linspace(0.1, 0.9, 50, dtype=torch.bfloat16)
    with PtdbgDispatch("all", dump_path=tmp_path) as run:
        (x.float() * 40).to(torch.bfloat16)
        x.sigmoid()
        torch.softmax(x, 0, dtype=torch.float32)
        torch.complex(x.float(), x.float()).exp()
        (x * 100).int() // 3
        torch.topk(x, 3)
        x.mean().item()
        torch.zeros(0).exp()
        x.to(torch.float8_e4m3fn)
    assert {name for name, passes in results(run).items() if passes != "True"} == {"mul_2_output"}  # 90 in bfloat16
    rows = {row["Npu Name"]: row for row in table(run, "details")}
    assert rows["sigmoid_1_output.forward.output.0"]["error_thd"] == f"{2**-8:.14f}"
    assert rows["topk_1_output.forward.output.1"]["NPU Dtype"] == "torch.int64"
    assert rows["exp_2_output.forward.output.0"]["Message"] == standard.EMPTY
    given, truth = files(run, "npu"), files(run, "cpu")
    assert given["sigmoid_1_input.0.npy"].dtype == np.float32 and truth["sigmoid_1_output.npy"].dtype == np.float64
    assert given["exp_1_output.npy"].dtype == np.complex64 and truth["exp_1_output.npy"].dtype == np.complex128
    assert given["topk_1_input.1.npy"] == 3 and given["topk_1_output.1.npy"].tolist() == [49, 48, 47]


def test_operators_of_extensions(tmp_path):
    with torch.library._scoped_library("ptdbg_test", "FRAGMENT") as library:
        for name, kernel in (("twice", lambda x: x * 2), ("noisy", lambda x: x + torch.rand(x.shape, dtype=x.dtype))):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, kernel, "CPU")
        torch.manual_seed(1)
        bare = torch.ops.ptdbg_test.noisy(torch.ones(3))
        torch.manual_seed(1)
        with PtdbgDispatch("list", ["twice"], dump_path=tmp_path) as run:
            noisy = torch.ops.ptdbg_test.noisy(torch.ones(3))
            torch.ops.ptdbg_test.twice(torch.ones(3))
        assert torch.equal(noisy, bare)
    assert results(run) == {"ones_1_output": "True", "ones_2_output": "True", "twice_1_output": "True"}
    assert list(files(run, "cpu")) == ["twice_1_output.npy"]


def test_other_modes_and_subclasses(tmp_path):
    """Our calls are no calls of the training: modes outside do not see them, and what a subclass calls is judged."""
    two_tensor = pytest.importorskip("torch.testing._internal.two_tensor")
    seen = []

    class Outside(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with FlopCounterMode(display=False) as flops, Outside(), PtdbgDispatch(dump_path=tmp_path) as run:
        a = torch.ones(4, 4)
        a @ a
        two_tensor.TwoTensor(a, a * 2) @ a
    assert [str(func) for func in seen].count("aten.mm.default") == 3 and len(seen) == len(results(run))
    assert flops.get_total_flops() == 3 * 2 * 4**3
    assert [name for name in results(run) if name.startswith("mm")] == ["mm_1_output", "mm_2_output", "mm_3_output"]


def test_errors_of_ours_stay_ours(tmp_path, caplog):
    x = torch.ones(3)
    with PtdbgDispatch("all", dump_path=tmp_path) as run:
        for side in ("npu", "cpu"):  # as a disk that fails
            os.rmdir(os.path.join(run.root_path, side))
            Path(run.root_path, side).write_text("")
        assert torch.exp(x).exp().sum() > 0
        with pytest.raises(RuntimeError, match="must match"):  # errors of the script stay its own
            x + torch.ones(2)
    texts = [record.getMessage() for record in caplog.records]
    assert sum("the files of exp_1 are not written: " in text for text in texts) == 1
    assert not any("exp_2" in text for text in texts)
    assert "calls judged, 0 fail; 0 could not be judged; " in texts[-1]
    assert results(run)["exp_2_output"] == "True"


def test_calls_that_cannot_be_judged(tmp_path, caplog):
    """The other call has float64, which this kernel does not take."""
    with torch.library._scoped_library("ptdbg_test", "FRAGMENT") as library:
        library.define("narrow(Tensor x) -> Tensor")
        library.impl("narrow", lambda x: torch.nonsense if x.dtype == torch.float64 else x * 2, "CPU")
        x = torch.ones(3)
        with PtdbgDispatch(dump_path=tmp_path) as run:
            torch.ops.ptdbg_test.narrow(x)
            assert torch.ops.ptdbg_test.narrow(x).tolist() == [2, 2, 2]
    texts = [record.getMessage() for record in caplog.records]
    assert sum("ptdbg_test.narrow.default is not judged: " in text for text in texts) == 1
    assert "0 calls judged, 0 fail; 2 could not be judged; " in texts[-1] and results(run) == {}


def test_plain_tables_have_no_header(tmp_path, monkeypatch):
    monkeypatch.setenv("MSPROBE_PLAIN", "1")
    with PtdbgDispatch(dump_path=tmp_path) as run:
        torch.ones(2).exp()
    (path,) = Path(run.root_path).glob("accuracy_checking_result_*.csv")
    assert path.read_text(encoding="utf-8-sig").splitlines()[0] == "ones_1_output,True,Nan"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"dump_mode": "some"}, "dump_mode is 'some'; allowed: all, list, auto, OFF (PtdbgDispatch)"),
        ({"api_list": "add"}, "api_list is 'add'; allowed: a list of names of operators"),
        ({"api_list": [3]}, "api_list is [3]"),
        ({"debug": 1}, "debug is 1; allowed: True, False"),
        ({"dump_path": None}, "dump_path is None; allowed: the path of a directory"),
        ({"dump_path": __file__}, "allowed: the path of a directory"),
        ({"tag": "../x"}, "tag is '../x'; allowed: letters, digits, _ and -"),
        ({"process_num": -1}, "process_num is -1; allowed: an integer from 0"),
    ],
)
def test_wrong_arguments(tmp_path, given, shown):
    with pytest.raises(MsprobeException) as error:
        PtdbgDispatch(**{"dump_path": tmp_path / "out", **given})
    assert shown in str(error.value) and not (tmp_path / "out").exists()


def test_names_that_no_operator_has(tmp_path, caplog):
    PtdbgDispatch("list", ["matmul", "matmull"], dump_path=tmp_path)
    assert "no operator of torch is named matmull" in caplog.text and "named matmul;" not in caplog.text


def test_comparisons_and_numbers_that_are_no_number(tmp_path):
    """A number is rounded to the dtype of the tensor before it is compared; NaN read from a tensor is NaN."""
    x = torch.linspace(0, 1, 3001).bfloat16()
    with PtdbgDispatch(dump_path=tmp_path) as run:
        for passes in (x > 0.1, x <= 0.3, torch.tensor([0.1, 0.2]) == 0.1):
            assert passes.any()
        assert torch.tensor(float("nan")).item() != 0
    found = results(run)
    assert {"gt_1_output", "le_1_output", "eq_1_output"} <= set(found) and set(found.values()) == {"True"}


def test_an_operator_that_asserts_is_not_judged(tmp_path):
    calls = []

    def kernel(x):
        calls.append(x.dtype)
        assert x.dtype == torch.float32, "float32 only"
        return x * 2

    with torch.library._scoped_library("ptdbg_test", "FRAGMENT") as library:
        library.define("picky(Tensor x) -> Tensor")
        library.impl("picky", kernel, "CPU")
        with PtdbgDispatch(dump_path=tmp_path) as run:
            assert torch.equal(torch.ops.ptdbg_test.picky(torch.ones(3)), torch.full((3,), 2.0))
    assert calls == [torch.float32, torch.float64] and not any(name.startswith("picky") for name in results(run))

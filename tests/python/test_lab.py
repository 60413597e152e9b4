"""`msprobe lab`: functions of a dump called again in other batches, chunks, layouts and threads."""

import json
import sys

import pytest
from launch import HERE, run_python

sys.path.insert(0, str(HERE.parent / "golden"))
sys.path.insert(0, str(HERE.parent / "lab"))

from graph_cases import run
from oracle import compared
from oracle_calls import DTYPES

ENV = {"MSPROBE_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    root = tmp_path_factory.mktemp("lab")
    run_python([HERE.parent / "lab" / "oracle_calls.py", root])
    return root


def test_cells_are_those_computed_by_hand(calls):
    report = json.loads(run(["lab", calls, "--json"], env=ENV).stdout)
    count, equal, apart = compared(report, DTYPES[:1])
    assert (count, equal) == (142, 142), apart
    assert (report["batch"], report["sequence"]) == (6, 10)
    # By itself a row is multiplied by another kernel, and a single thread sums in the same order.
    first = {origin["relation"]: origin["first"] for origin in report["origins"]}
    assert first["again"] is None and first["chunked"] == "Functional.scaled_dot_product_attention.0"
    sensitive = {
        row["function"]: cell["ulp_of_largest"]
        for row in report["rows"]
        for cell in row["cells"]
        if cell["relation"] == "one ulp"
    }
    assert 0 < sensitive["tanh"] < 2


def test_what_is_chosen(calls):
    done = run(["lab", calls, "--ops", "linear", "--relations", "row_alone,again"], env={**ENV, "LC_ALL": "C.UTF-8"})
    assert done.stdout.startswith("3 calls on cpu with torch ")
    assert "row alone" in done.stdout and "padded" not in done.stdout


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        ([], 2, "lab takes a dump, a script, or a command after '--'"),
        (["@", "--relations", "upside down"], 2, "there is no relation upside down: use all, again, row alone"),
        pytest.param(["@", "-d", "moon"], 2, "torch has no device moon here", marks=pytest.mark.deep),
        (["nowhere"], 3, "nowhere"),
    ],
)
def test_what_cannot_be(calls, tmp_path, arguments, code, text):
    done = run(
        ["lab", *(calls if a == "@" else a for a in arguments)],
        check=False,
        env={**ENV, "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
    )
    assert done.returncode == code and text in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.deep
def test_a_script(tmp_path):
    (tmp_path / "infer.py").write_text(
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())\nfor _ in range(2):\n    model(torch.ones(4, 8))\n"
    )
    done = run(["lab", tmp_path / "infer.py", "--json"], env=ENV, cwd=tmp_path)
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert [row["function"] for row in report["rows"]] == ["linear", "gelu"] and report["batch"] == 4
    assert list(tmp_path.iterdir()) == [tmp_path / "infer.py"]

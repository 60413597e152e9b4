"""Tensors that are changed before they are compared: --config, and outputs of which only a part is valid."""

import json
import sys
from pathlib import Path

import numpy
import pytest
import torch
from launch import run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run
from test_compare_golden import assert_same_tensors, read_table
from test_compare_tensors import compare, save, table, write

NAME = "Functional.f.0.forward.output.{}.pt"


def values(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# Of each output: the target's value, and the golden one. The matrices of config() make them agree.
ROTATION = torch.linalg.qr(values(1, 8, 8))[0]
LEFT = values(2, 4, 4)


def pairs():
    x, y, z = values(3, 4, 8), values(4, 2, 3, 8), values(5, 4, 8, dtype=torch.float32)
    return [
        (x @ ROTATION.T, x),  # right of the target
        (y, y @ ROTATION.T),  # right of the golden one, a batch
        (x, LEFT @ x),  # left of the target
        (z, (LEFT.float() @ z @ ROTATION.float())),  # both
        (x, x),  # not named
        (x[0] @ ROTATION.T, x[0]),  # a vector
    ]


def config(folder):
    torch.save(ROTATION, folder / "r.pt")
    numpy.save(folder / "left.npy", LEFT.numpy())
    torch.save(LEFT.float(), folder / "left32.pt")
    torch.save(ROTATION.float(), folder / "r32.pt")
    text = {
        "right_matmul": {
            "target_tensor_map": {str(folder / "r.pt"): [NAME.format(0), NAME.format(5)]},
            "golden_tensor_map": {str(folder / "r.pt"): [NAME.format(1)]},
        },
        "left_matmul": {"target_tensor_map": {str(folder / "left.npy"): [NAME.format(2)]}, "golden_tensor_map": {}},
        "left_right_matmul": {
            "left_target_tensor_map": {str(folder / "left32.pt"): [NAME.format(3)]},
            "right_target_tensor_map": {str(folder / "r32.pt"): [NAME.format(3)]},
        },
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(text))  # which is YAML
    return path


@pytest.fixture
def sides(tmp_path):
    for side in (0, 1):
        folder = tmp_path / ("target", "golden")[side]
        write(folder, [save(folder, NAME.format(i), pair[side].contiguous()) for i, pair in enumerate(pairs())])
    return tmp_path / "target", tmp_path / "golden"


def test_products_agree_with_the_old_tools(old_python, sides, tmp_path):
    path = config(tmp_path)
    done = compare(*sides, tmp_path / "ours", "--config", path)
    assert "warning" not in done.stderr
    rows = table(tmp_path / "ours")
    assert [row["One Thousandth Err Ratio"] for row in rows] == ["1.0"] * 6
    assert all(float(row["MaxAbsErr"]) < 1e-5 for row in rows)
    args = ["compare", "-tp", sides[0] / "dump.json", "-gp", sides[1] / "dump.json", "-o", tmp_path / "theirs"]
    run_python([old_python.parent / "msprobe", *args, "--config", path], python=old_python, ours=False, cwd=tmp_path)
    (theirs,) = (read_table(p) for p in (tmp_path / "theirs").glob("*.csv"))
    ours = [list(rows[0]), *([row[k] for k in row] for row in rows)]
    rounding = {theirs[0].index(c) for c in ("EucDist", "MaxAbsErr", "MaxRelativeErr")}
    for a, b in zip(theirs, ours):
        assert [c for i, c in enumerate(a) if i not in rounding] == [c for i, c in enumerate(b) if i not in rounding]
        for i in rounding if a is not theirs[0] else ():
            assert float(a[i]) < 1e-4 and float(b[i]) < 1e-4
    plain = table_without(sides, tmp_path)
    assert [row["One Thousandth Err Ratio"] == "1.0" for row in plain] == [False] * 4 + [True, False]


def table_without(sides, tmp_path):
    compare(*sides, tmp_path / "plain")
    return table(tmp_path / "plain")


def test_products_that_do_not_exist_say_so(sides, tmp_path):
    """The old tool logs a line and compares the unchanged tensors."""
    torch.save(torch.ones(3, 3), tmp_path / "small.pt")
    torch.save(torch.ones(8, 8, dtype=torch.complex64), tmp_path / "complex.pt")
    maps = {"complex.pt": 1, "absent.pt": 2, "small.pt": 4}
    text = {"right_matmul": {"target_tensor_map": {str(tmp_path / k): [NAME.format(i)] for k, i in maps.items()}}}
    text["right_matmul"]["golden_tensor_map"] = {str(tmp_path / "small.pt"): ["Functional.typo.0.forward.output.0.pt"]}
    (tmp_path / "config.yaml").write_text(json.dumps(text))
    done = compare(*sides, tmp_path / "out", "--config", tmp_path / "config.yaml", check=False)
    assert done.returncode == 3 and "3 rows could not be compared" in done.stderr
    assert (
        "--config: no tensor that was compared has the data name Functional.typo.0.forward.output.0.pt" in done.stderr
    )
    rows = table(tmp_path / "out")
    words = ("products are of real numbers", "absent.pt", "shapes [4, 8] and [3, 3] have no product")
    for row, word in zip((rows[1], rows[2], rows[4]), words):
        assert row["Cosine"] == "unsupported" and row["Result"] == "warning"
        assert "NPU data could not be post-processed: " in row["Err_message"] and word in row["Err_message"]


@pytest.mark.parametrize(
    "text,word",
    [
        ("right_matmull: {}", 'line 1: unknown key "right_matmull"'),
        ("right_matmul:\n  target_map: {}", 'line 2: right_matmul has no "target_map"'),
        ("right_matmul:\n  target_tensor_map:\n    a.pt: x", 'line 3: "a.pt" must have a list of data names'),
        ("right_matmul: [1]", "must hold maps"),
        ("left_matmul:\n  target_tensor_map: [1]", "line 2: target_tensor_map must have paths"),
        ("right_matmul: {}", "names no tensor"),
        ("[]", "must hold right_matmul"),
    ],
)
def test_files_that_are_no_config(sides, tmp_path, text, word):
    (tmp_path / "config.yaml").write_text(text)
    done = compare(*sides, tmp_path / "out", "--config", tmp_path / "config.yaml", check=False)
    assert done.returncode == 3 and word in done.stderr and done.stderr.count("\n") == 1, done.stderr


def grouped(folder, output, groups):
    """A dump of one call whose outputs are valid up to the sum of group_list."""
    op = "NPU.npu_grouped_matmul.0.forward"
    write(folder, [])
    items = {"group_list": save(folder, f"{op}.kwargs.group_list.pt", groups)}
    item = save(folder, f"{op}.output.0.pt", output)
    dump = json.loads((folder / "dump.json").read_text())
    dump["data"] = {op: {"input_args": [], "input_kwargs": items, "output": [item]}}
    (folder / "dump.json").write_text(json.dumps(dump))


def test_rows_behind_the_valid_length_do_not_count(old_python, tmp_path):
    right = torch.arange(1.0, 13).reshape(6, 2)
    wrong = right.clone()
    wrong[4:] = 1e9  # what was in memory
    clean = right.clone()
    clean[4:] = 0
    grouped(tmp_path / "target", wrong, torch.tensor([1, 3]))
    grouped(tmp_path / "golden", clean, torch.tensor([1, 3]))
    compare(tmp_path / "target", tmp_path / "golden", tmp_path / "ours")
    args = [
        "compare",
        "-tp",
        tmp_path / "target/dump.json",
        "-gp",
        tmp_path / "golden/dump.json",
        "-o",
        tmp_path / "theirs",
    ]
    run_python([old_python.parent / "msprobe", *args], python=old_python, ours=False, cwd=tmp_path)
    (theirs,), (ours,) = ([read_table(p) for p in (tmp_path / d).glob("*.csv")] for d in ("theirs", "ours"))
    assert_same_tensors({"table": theirs}, {"table": ours})
    assert ours[-1][ours[0].index("MaxAbsErr")] == "0.0"
    # The old tool does not clean the golden side, which may be of the same device.
    grouped(tmp_path / "golden", wrong * 2, torch.tensor([1, 3]))
    compare(tmp_path / "target", tmp_path / "golden", tmp_path / "both")
    (row,) = [row for row in table(tmp_path / "both") if row["NPU Name"].endswith("output.0")]
    assert row["MaxAbsErr"] == "8.0"


def test_statistics_have_nothing_to_process(tmp_path):
    (tmp_path / "config.yaml").write_text(f"right_matmul: {{target_tensor_map: {{m.pt: [{NAME.format(0)}]}}}}")
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": {}}
    item = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}
    dump["data"]["Functional.f.0.forward"] = {"input_args": [item], "input_kwargs": {}, "output": [item]}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    path = tmp_path / "dump.json"
    done = run(["compare", "-tp", path, "-gp", path, "-o", tmp_path / "out", "--config", tmp_path / "config.yaml"])
    assert "--config: no tensor that was compared has the data name" in done.stderr

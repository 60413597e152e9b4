"""`output_postprocess` of acc_check: functions of the user change outputs before they are judged, as with mindstudio-probe."""

import json

import pytest
import torch
from launch import HERE, run_python
from test_acc_check import check, results

VALID = 2  # rows
HANDLERS = '''
def keep(api_name, output, args, kwargs):
    """Only the first rows are the op's; what is behind them was in memory already."""
    assert api_name == "add" and len(args) == 2
    changed = output.clone()
    changed[2:] = 0
    return changed


def nothing(api_name, output, args, kwargs):
    return None


def fails(api_name, output, args, kwargs):
    raise KeyError("group_list")
'''


def leaf(path, tensor):
    torch.save(tensor, path)
    shown = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape), "data_name": path.name}
    return shown | {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 1.0, "requires_grad": True}


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A dump of two calls, forward and backward, and the functions beside it."""
    root = tmp_path_factory.mktemp("handlers")
    files = root / "dump_tensor_data"
    files.mkdir()
    torch.manual_seed(0)
    data = {}
    for name in ("Torch.add.0", "Torch.mul.0"):
        given = [leaf(files / f"{name}.forward.input.{i}.pt", torch.rand(4, 3)) for i in range(2)]
        incoming = leaf(files / f"{name}.backward.input.0.pt", torch.rand(4, 3))
        data[f"{name}.forward"] = {"input_args": given, "input_kwargs": {}, "output": []}
        data[f"{name}.backward"] = {"input": [incoming], "output": []}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(files)}
    (root / "dump.json").write_text(json.dumps({**head, "data": data}))
    (root / "handlers.py").write_text(HANDLERS)
    return root / "dump.json"


def config(dump, target, golden):
    """The file that names the functions."""
    sides = {"target": target, "golden": golden}
    lines = ["acc_check_handlers:"]
    for side, function in sides.items():
        lines += [f"  {side}:" + ("" if function else " {}")]
        lines += [f'    add: "handlers.py:{function}"'] if function else []
    path = dump.with_name("rules.yaml")
    path.write_text("\n".join(lines) + "\n")
    settings = dump.with_name("config.json")
    settings.write_text(json.dumps({"acc_check": {"output_postprocess": str(path)}}))
    return path, settings


@pytest.mark.parametrize(
    ("target", "golden", "expected"),
    [
        ("keep", "keep", ["pass", "pass", ""]),
        ("keep", "", ["error", "error", ""]),
        ("nothing", "", ["pass", "pass", ""]),
    ],
)
def test_outputs_are_changed(dump, tmp_path, target, golden, expected):
    _, settings = config(dump, target, golden)
    check(dump, tmp_path / "out", "-d", "cpu", "-config", settings)
    found = results(tmp_path / "out")
    assert found["Torch.add.0"] == expected
    assert found["Torch.mul.0"] == ["pass", "pass", ""]  # it has no function


def test_a_function_that_fails_is_said(dump, tmp_path):
    _, settings = config(dump, "fails", "")
    check(dump, tmp_path / "out", "-d", "cpu", "-config", settings)
    status, _, why = results(tmp_path / "out")["Torch.add.0"]
    assert status == "SKIP" and "handlers.py:fails failed (KeyError: 'group_list')" in why
    assert results(tmp_path / "out")["Torch.mul.0"][0] == "pass"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("other: {}", "has no acc_check_handlers"),
        ("acc_check_handlers: {target: [add]}", "line 1: target must have names of functions"),
        ("acc_check_handlers:\n  target:\n    add: handlers.py", 'line 3: "add" must have "file.py:function"'),
        ("acc_check_handlers:\n  golden:\n    add: 'gone.py:keep'", "line 3: there is no file"),
    ],
)
def test_files_that_do_not_say_it(dump, tmp_path, text, said):
    path, settings = config(dump, "keep", "")
    path.write_text(text + "\n")
    done = check(dump, tmp_path / "out", "-d", "cpu", "-config", settings, code=3)
    assert said in done.stderr


def test_recorded_results_are_not_changed(dump, tmp_path):
    _, settings = config(dump, "keep", "keep")
    done = check(dump, tmp_path / "out", "-d", "recorded", "-config", settings, code=2)
    assert "output_postprocess is for calls of PyTorch that are made again" in done.stderr


@pytest.mark.parametrize("golden", ["keep", ""])
def test_as_the_earlier_tool(dump, tmp_path, old_python, golden):
    rules, settings = config(dump, "keep", golden)
    out = tmp_path / "ours"
    check(dump, out, "-d", "cpu", "-config", settings)
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    run_python([HERE / "old_acc_check.py", rules, dump, earlier], python=old_python, ours=False)
    assert {name: row[:2] for name, row in results(out).items()} == results(earlier)
    ours = results(out, "details")
    for name, row in results(earlier, "details").items():
        assert ours[name][:21] == row[:21], name  # all but the text behind the status

"""`from msprobe.pytorch import compare, compare_distributed`, and the same of msprobe.mindspore, which needs no framework."""

import json
import os
import subprocess
import sys

import openpyxl
import pytest
from graph_cases import TENSOR, find_command
from msprobe._compare import CompareException, compare, compare_distributed


@pytest.fixture(autouse=True)
def command_under_test(monkeypatch):
    monkeypatch.setenv("MSPROBE_BIN", str(find_command()))


def dump(path, names, stacks=True, **output):
    path.mkdir(parents=True)
    data = {name: {"input_args": [TENSOR], "input_kwargs": {}, "output": [{**TENSOR, **output}]} for name in names}
    text = {"task": "statistics", "level": "L1", "framework": "pytorch", "data": data}
    (path / "dump.json").write_text(json.dumps(text))
    if stacks:
        (path / "stack.json").write_text(json.dumps({"0": [names, ["File a.py, line 1, in f, \n x"]]}))
    return path / "dump.json"


@pytest.fixture
def pair(tmp_path):
    names = ["Functional.f.0.forward", "Functional.f.1.forward"]
    return {
        "npu_json_path": str(dump(tmp_path / "t", names, Max=9.0)),
        "bench_json_path": str(dump(tmp_path / "g", names)),
        "stack_json_path": str(tmp_path / "t" / "stack.json"),
        "is_print_compare_log": True,
    }


def sheet(out):
    (path,) = out.glob("*.xlsx")
    rows = list(openpyxl.load_workbook(path, read_only=True).worksheets[0].values)
    return path.name, list(rows[0]), rows[1:]


def test_compare_writes_a_workbook_and_returns_the_summary(pair, tmp_path):
    out = tmp_path / "out"
    summary = compare(pair, str(out))
    name, header, rows = sheet(out)
    assert name.startswith("compare_result_2") and len(rows) == 4
    assert "NPU_Stack_Info" not in header, "only with stack_mode"
    assert summary["pairs"][0]["matched_ops"] == 2
    assert summary["pairs"][0]["files"] == [str(out / name)]
    assert list(out.glob("advisor_*.txt"))


def test_stack_mode_and_auto_analyze(pair, tmp_path):
    out = tmp_path / "out"
    compare(pair, str(out), stack_mode=True, auto_analyze=False)
    _, header, rows = sheet(out)
    assert rows[0][header.index("NPU_Stack_Info")].startswith("['File a.py")
    assert not list(out.glob("advisor_*.txt"))


def test_another_stack_file(pair, tmp_path):
    pair["stack_json_path"] = str(tmp_path / "s.json")
    (tmp_path / "s.json").write_text(json.dumps({"Functional.f.0.forward": ["File other.py, line 3"]}))
    compare(pair, str(tmp_path / "out"), stack_mode=True)
    _, header, rows = sheet(tmp_path / "out")
    assert "other.py" in rows[0][header.index("NPU_Stack_Info")]


def test_names_of_compare_json_and_a_mapping_as_a_dict(tmp_path):
    paths = {
        "npu_path": dump(tmp_path / "t", ["Functional.f.3.forward"]),
        "bench_path": dump(tmp_path / "g", ["Functional.f.0.forward"]),
    }
    assert compare(paths, tmp_path / "a")["pairs"][0]["matched_ops"] == 0
    assert compare(paths, tmp_path / "b", fuzzy_match=True)["pairs"][0]["matched_ops"] == 1
    mapping = {"Functional.f.3.forward.output.0": "Functional.f.0.forward.output.0"}
    compare(paths, tmp_path / "c", data_mapping=mapping)
    _, header, rows = sheet(tmp_path / "c")
    assert [row[1] for row in rows] == ["N/A", "Functional.f.0.forward.output.0"]


def test_compare_distributed(tmp_path):
    for side in "tg":
        for rank in range(2):
            dump(tmp_path / side / f"rank{rank}", ["Functional.f.0.forward"])
    summary = compare_distributed(str(tmp_path / "t"), str(tmp_path / "g"), output_path=str(tmp_path / "out"))
    assert [p["label"] for p in summary["pairs"]] == ["rank0", "rank1"]
    assert len(list((tmp_path / "out").glob("compare_result_rank?_*.xlsx"))) == 2


def test_errors_are_one_exception_with_the_text(pair, tmp_path):
    wrong = [
        ({}, {}, 2, "npu_json_path"),
        ({**pair, "npu_json_path": 3}, {}, 2, "must be a path"),
        (pair, {"fuzzy_match": "yes"}, 2, "True or False"),
        (pair, {"fast": True}, 2, "unknown option 'fast'"),
        (pair, {"backend": "fsdp"}, 2, "--consistent_check"),
        (pair, {"api_mapping": True}, 2, "MindSpore"),
        ({**pair, "bench_json_path": str(tmp_path / "none" / "dump.json")}, {}, 3, "does not exist"),
    ]
    for paths, options, code, word in wrong:
        with pytest.raises(CompareException) as error:
            compare(paths, str(tmp_path / "out"), **options)
        assert error.value.code == code and word in str(error.value)
        assert "\n" not in str(error.value) and "[msprobe]" not in str(error.value)


def test_paths_beyond_the_locale(tmp_path):
    """What the command says is UTF-8, whatever the script's locale can say."""
    absent = str(tmp_path / "\u00fcber" / "dump.json")
    source = f"""
from msprobe._compare import CompareException, compare
try:
    compare({{"npu_json_path": {absent!a}, "bench_json_path": {absent!a}}}, "out")
except CompareException as error:
    print(ascii(str(error)))
"""
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, env=plain)
    assert done.returncode == 0, done.stderr
    assert "\\xfcber" in done.stdout and "does not exist" in done.stdout


def test_the_two_packages_have_it():
    pytest.importorskip("torch")
    import msprobe.pytorch

    assert msprobe.pytorch.compare is compare and msprobe.pytorch.CompareException is CompareException


def test_mindspore_needs_no_framework_and_says_what_it_lacks(pair, tmp_path):
    source = f"""
import sys
from msprobe.mindspore import compare, compare_distributed
compare({pair!r}, {str(tmp_path / "out")!r})
assert "torch" not in sys.modules and "mindspore" not in sys.modules
try:
    from msprobe.mindspore import PrecisionDebugger
except ImportError as error:
    assert "PrecisionDebugger" in str(error)
else:
    raise AssertionError("there is no capture for MindSpore")
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").glob("*.xlsx"))) == 1

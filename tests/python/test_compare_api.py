"""`from msprobe.pytorch import compare, compare_distributed`, and the same of msprobe.mindspore, which needs no framework."""

import json
import os
import subprocess
import sys

import openpyxl
import pytest
from graph_cases import TENSOR, find_command
from msprobe import (
    CompareArgumentError,
    CompareException,
    CompareInputError,
    CompareInternalError,
    CompareResult,
    compare,
    compare_distributed,
)


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


def test_compare_writes_a_workbook_and_returns_the_verdict(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    out = tmp_path / "out"
    result = compare(pair, str(out))
    name, header, rows = sheet(out)
    assert name.startswith("compare_result_2") and len(rows) == 4
    assert "NPU_Stack_Info" not in header, "only with stack_mode"
    assert result.summary["pairs"][0]["matched_ops"] == 2
    assert result.outcome == "origin" and result.verdict["origins"][0]["op"] == "Functional.f.0.forward"
    assert result.ops["bug"] == 1 and result.ops["inherited"] == 1 and result.ops["bit_equal"] == 0
    assert result.files[0] == out / name
    assert set(result.files) == set(out.iterdir()), "every file written is named"
    assert list(out.glob("advisor_*.txt")) and not result.warnings


def test_the_result_prints_as_the_headline_of_the_command(pair, tmp_path, monkeypatch):
    paths = ["-tp", pair["npu_json_path"], "-gp", pair["bench_json_path"], "-o", str(tmp_path / "out")]
    for locale in ("C", "zh_CN.UTF-8"):
        monkeypatch.setenv("LC_ALL", locale)
        result = compare(pair, tmp_path / "out")
        card = subprocess.run([find_command(), "compare", *paths], capture_output=True, encoding="utf-8", check=True)
        assert card.stdout.startswith("\n  ".join(result.lines) + "\n")
        assert str(result) == result.headline == result.lines[0] and result.outcome not in str(result)
        with pytest.raises(AttributeError):
            result.verdict = None  # what was found does not change


def test_paths_by_keyword_and_every_kind_of_file(pair, tmp_path):
    out = tmp_path / "out"
    options = {
        "html": True,
        "unmatched": True,
        "ruler": True,
        "diff_analyze": True,
        "suggest_mapping": out / "map.yaml",
    }
    result = compare(target=tmp_path / "t", golden=tmp_path / "g", output_path=out, **options)
    assert set(result.files) == set(out.iterdir())
    assert {path.suffix for path in result.files} >= {".html", ".xlsx", ".json", ".yaml"}
    golden = tmp_path / "g" / "dump.json"
    equal = compare(target=golden, golden=golden, output_path=out)
    assert equal.outcome == "equal" and equal.ops["bit_equal"] == 2
    structure = compare(target=tmp_path / "t", golden=tmp_path / "g", output_path=tmp_path / "s", structure=True)
    assert structure.verdict is None and structure.outcome == "unknown" and not structure.ops
    assert str(structure) == "Structure: 0 differences between the models, in 1 pairs"
    assert set(structure.files) == set((tmp_path / "s").iterdir())


def test_what_went_wrong_beside_a_result(pair, tmp_path):
    """A dump that ends in the middle is a warning; a pair that cannot be compared leaves the others."""
    for side in "TG":
        for rank in range(2):
            dump(tmp_path / side / f"rank{rank}", ["Functional.f.0.forward", "Functional.f.1.forward"])
    cut = tmp_path / "T" / "rank0" / "dump.json"
    cut.write_text(cut.read_text()[:-40])
    result = compare(target=tmp_path / "T", golden=tmp_path / "G", output_path=tmp_path / "a")
    assert "dump.json" in " ".join(result.warnings), result.warnings
    assert not result.whole and result.outcome == "unknown" and "was cut" in str(result)
    assert "what was given is not whole" in result.warnings[-1]
    (tmp_path / "T" / "rank1" / "dump.json").write_text("{")
    with pytest.raises(CompareInputError) as error:
        compare(target=tmp_path / "T", golden=tmp_path / "G", output_path=tmp_path / "b")
    assert "1 of 2 pairs could not be compared" in str(error.value)
    (failed,) = error.value.result.summary["failures"]
    assert failed["label"] == "rank1" and len(error.value.result.summary["pairs"]) == 1


COMMANDS = {
    "kill -9 $$": (CompareInternalError, "SIGKILL"),
    "echo '[msprobe] warning: beware' >&2; echo '{\"files\": 1'": (CompareInternalError, "no summary"),
    "exit 4": (CompareInternalError, "said 'nothing'"),
    "echo 'cannot open shared object' >&2; exit 127": (CompareInternalError, "cannot open shared object"),
    "echo '[msprobe] error: disk full' >&2; echo; echo later >&2; exit 4": (CompareInternalError, "disk full"),
    "exit 130": (KeyboardInterrupt, ""),
}


@pytest.mark.parametrize("body", COMMANDS)
def test_a_command_that_fails_in_other_ways(body, pair, tmp_path, monkeypatch):
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\n{body}\n")
    command.chmod(0o755)
    monkeypatch.setenv("MSPROBE_BIN", str(command))
    kind, word = COMMANDS[body]
    with pytest.raises(kind) as error:
        compare(pair, tmp_path / "out")
    assert word in str(error.value)
    monkeypatch.setenv("MSPROBE_BIN", str(tmp_path / "none"))
    with pytest.raises(CompareInternalError, match="cannot be run.*install the package again"):
        compare(pair, tmp_path / "out")


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
    assert compare(paths, tmp_path / "a").summary["pairs"][0]["matched_ops"] == 0
    assert compare(paths, tmp_path / "b", fuzzy_match=True).summary["pairs"][0]["matched_ops"] == 1
    mapping = {"Functional.f.3.forward.output.0": "Functional.f.0.forward.output.0"}
    compare(paths, tmp_path / "c", data_mapping=mapping)
    _, header, rows = sheet(tmp_path / "c")
    assert [row[1] for row in rows] == ["N/A", "Functional.f.0.forward.output.0"]


def test_compare_distributed(tmp_path):
    for side in "tg":
        for rank in range(2):
            dump(tmp_path / side / f"rank{rank}", ["Functional.f.0.forward"])
    result = compare_distributed(str(tmp_path / "t"), str(tmp_path / "g"), output_path=str(tmp_path / "out"))
    assert [p["label"] for p in result.summary["pairs"]] == ["rank0", "rank1"] and result.outcome == "equal"
    assert len(list((tmp_path / "out").glob("compare_result_rank?_*.xlsx"))) == 2


def test_errors_are_one_exception_with_the_text(pair, tmp_path):
    wrong = [
        ({}, {}, 2, "npu_json_path"),
        ({**pair, "npu_json_path": 3}, {}, 2, "must be a path"),
        (pair, {"fuzzy_match": "yes"}, 2, "True or False"),
        (pair, {"fast": True}, 2, "unknown option 'fast'"),
        (pair, {"htlm": True}, 2, "unknown option 'htlm': did you mean 'html'? Known are"),
        (pair, {"backend": "fsdp"}, 2, "--consistent_check"),
        (pair, {"api_mapping": True}, 2, "MindSpore"),
        (pair, {"layer_mapping": 7}, 2, "must be a path, a dict or True, not 7"),
        (pair, {"thresholds": 7}, 2, "thresholds must be text or a path, not 7"),
        (pair, {"rank": [-1]}, 2, "rank must be a number from 0"),
        (pair, {"target": tmp_path}, 2, "give one of the two forms"),
        (pair, {"suffix": "_a"}, 2, "suffix is not supported"),
        ("a/dump.json", {}, 2, "target=..., golden=..."),
        ({**pair, "bench_json_path": str(tmp_path / "none" / "dump.json")}, {}, 3, "does not exist"),
    ]
    for paths, options, code, word in wrong:
        with pytest.raises(CompareException) as error:
            compare(paths, str(tmp_path / "out"), **options)
        assert error.value.code == code and word in str(error.value)
        assert type(error.value) is (CompareArgumentError if code == 2 else CompareInputError)
        assert error.value.result is None
        assert "\n" not in str(error.value) and "[msprobe]" not in str(error.value)


def test_paths_beyond_the_locale(tmp_path):
    """What the command says is UTF-8, whatever the script's locale can say."""
    absent = str(tmp_path / "\u00fcber" / "dump.json")
    source = f"""
from msprobe import CompareException, compare
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
    assert msprobe.pytorch.CompareResult is CompareResult


def test_the_import_paths_of_the_earlier_tool():
    pytest.importorskip("torch")
    import msprobe.pytorch
    from msprobe.mindspore.compare.distributed_compare import ms_compare_distributed
    from msprobe.mindspore.compare.ms_compare import ms_compare
    from msprobe.pytorch.compare.distributed_compare import compare_distributed as distributed
    from msprobe.pytorch.compare.pt_compare import pt_compare

    assert pt_compare is ms_compare is compare is msprobe.pytorch.compare, "the function, not the package of its name"
    assert distributed is ms_compare_distributed is compare_distributed


def test_a_training_script_does_not_load_what_compares():
    source = """
import sys, msprobe
assert not [name for name in sys.modules if name.startswith("msprobe._compare")]
assert set(msprobe.__all__) <= set(dir(msprobe)) and all(getattr(msprobe, name) for name in msprobe.__all__)
try:
    msprobe.graph
except AttributeError as error:
    assert "no attribute 'graph'" in str(error)
"""
    subprocess.run([sys.executable, "-c", source], check=True)


def test_mindspore_needs_no_framework_and_says_what_it_lacks(pair, tmp_path):
    source = f"""
import sys
import msprobe.mindspore
from msprobe.mindspore import compare, compare_distributed
assert not hasattr(msprobe.mindspore, "_fields")  # pydoc asks for it
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

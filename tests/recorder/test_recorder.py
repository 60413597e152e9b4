"""Every entry that an independent recorder saw is in the dump and says the same, case by case (zoo/README.md)."""

import json

import numpy as np
import pytest
from zoo_cases import cases, mindspore_cases, run_case, run_mindspore_case
from zoo_judge import judge_case

# What is wrong today: found, and for what. A case that is mended fails here until its line is gone.
KNOWN: dict = {}
KNOWN_MINDSPORE: dict = {}


def _marked(case):
    marks = [pytest.mark.deep] if case.deep else []
    if case.name in KNOWN:
        marks.append(pytest.mark.xfail(reason=KNOWN[case.name], strict=True))
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in cases()])
def test_dump_is_what_the_recorder_saw(case, tmp_path):
    verdict = run_case(case, tmp_path)
    assert verdict.status == "ok", "\n".join([verdict.status, *verdict.evidence()])
    assert verdict.entries > 0


def test_each_case_says_what_it_is():
    found = [*cases(), *mindspore_cases()]
    assert len(found) >= 80
    assert [case.name for case in found if not case.text.endswith((".", ")"))] == []
    assert not set(KNOWN) - {case.name for case in cases()}
    assert not set(KNOWN_MINDSPORE) - {case.name for case in mindspore_cases()}


def _marked_mindspore(case):
    marks = [pytest.mark.deep]
    if case.name in KNOWN_MINDSPORE:
        marks.append(pytest.mark.xfail(reason=KNOWN_MINDSPORE[case.name], strict=True))
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_marked_mindspore(case) for case in mindspore_cases()])
def test_dump_of_mindspore_is_what_the_recorder_saw(case, tmp_path, mindspore_python):
    verdict = run_mindspore_case(case, tmp_path, mindspore_python)
    assert verdict.status == "ok", "\n".join([verdict.status, *verdict.evidence()])
    assert verdict.entries > 0


def _first(value, wanted):
    """The first item of a tensor in nested lists and dicts."""
    if isinstance(value, dict) and wanted in value:
        return value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return next((found for member in members if (found := _first(member, wanted)) is not None), None)


@pytest.mark.parametrize("fault", ["digit", "null", "entry", "dtype", "bits", "twice"])
def test_the_judge_sees_a_planted_fault(fault, tmp_path):
    """Of each kind of fault one is planted into the files of a case that is fine."""
    case = next(case for case in cases() if case.name == "plain")
    assert run_case(case, tmp_path).status == "ok"
    path = tmp_path / "dump" / "step1" / "rank" / "dump.json"
    dump = json.loads(path.read_text())
    name = "Module.b.Linear.backward.0"
    item = _first(dump["data"][name], "Max")
    expected = {"digit": "wrong", "dtype": "wrong", "bits": "bits differ"}.get(fault, "silently missing")
    if fault == "digit":
        item["Min"] = float(np.nextafter(np.float32(item["Min"]), np.float32(0)))
    elif fault == "null":
        dump["data"][name]["output"][0] = None
    elif fault == "entry":
        del dump["data"][name]
    elif fault == "dtype":
        item["dtype"] = "torch.float64"
    elif fault == "bits":
        ran = json.loads((tmp_path / "tool0.json").read_text())
        (tmp_path / "tool0.json").write_text(json.dumps({**ran, "bits": "others"}))
    text = json.dumps(dump)
    if fault == "twice":
        text = text.replace('"Module.a.Linear.backward.0"', f'"{name}"')
    path.write_text(text)
    verdict = judge_case(case.name, tmp_path, case.level, case.steps, case.ranks)
    assert verdict.status == expected
    assert any(name in line or "bits" in line for line in verdict.evidence())

"""The same run twice has no difference, no cause of NaN and the same bits on any layout; bugs planted on them are found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from graph_cases import find_command
from launch import REPO, run_python
from layout_pairs import WAYS
from layouts import MAKERS
from make_dumps import LAYOUT_SETS, layout_sets
from score import results_of

HERE = Path(__file__).resolve().parent
SETS = layout_sets()
BITS = [case.name for case in SETS["uncaptured"]]
BUGS = [case.name for case in SETS["layout_bugs"]]
# Bugs whose answer is not right, and why.
KNOWN_MISSES = {}
# Of `make test`: memory that nobody writes, a trial of a stage, buckets of gradients, and a bug on one rank.
QUICK = "same_fsdp2_mix same_gpipe_L1 bits_ddp_views scale_fsdp2_half".split()


def some_ways(layouts):
    """Pairs of each layout: `mix`, and two of the other ways in turn, so that each way meets two of five layouts. All of them:
    publish_layouts.py, which takes twice as long."""
    first, *others = WAYS
    for number, layout in enumerate(layouts):
        for way in (first, *(others[(number + step) % len(others)] for step in (0, 2))):
            yield f"same_{layout}_{way}"


SAME = sorted({*some_ways(MAKERS), *(name for name in QUICK if name.startswith("same_"))})


def asked_for(session):
    tests = [item for item in session.items if "dumps" in getattr(item, "fixturenames", ())]
    names = [item.callspec.params.get("name") if hasattr(item, "callspec") else None for item in tests]
    return [] if None in names else names


@pytest.fixture(scope="session")
def dumps(request, tmp_path_factory):
    """{name: directory} of the cases that are asked for."""
    root = tmp_path_factory.mktemp("layouts")
    arguments = ["--sets", *LAYOUT_SETS, "--only", *asked_for(request.session)]
    run_python([HERE / "make_dumps.py", root, *arguments], cwd=root, fresh=True, timeout=1800)
    return {case.name: case for directory in root.iterdir() for case in directory.iterdir()}


@pytest.fixture(scope="session")
def answers(dumps):
    compared = {path.parent for name, path in dumps.items() if name not in BITS}
    return {name: one for directory in compared for name, one in results_of(directory).items()}


def each(names):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.deep) for name in names]


def bits(side):
    return [json.loads((side / f"bits{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("name", each(SAME))
def test_the_same_run_has_no_difference(answers, dumps, name):
    result = answers[name]
    assert (result.answer.kind, result.bugs, result.claims) == ("none", 0, []), result.answer
    for side in ("target", "golden"):
        command = [find_command(), "overflow_check", "-i", dumps[name] / side / "step0", "-o", dumps[name], "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["first"] == []
    assert bits(dumps[name] / "target") == bits(dumps[name] / "golden")


@pytest.mark.parametrize("name", each(BITS))
def test_capture_changes_no_bit(dumps, name):
    """Of losses, gradients, parameters and the random generator; the golden side was captured, the target was not."""
    assert not list((dumps[name] / "target").glob("step*"))
    assert bits(dumps[name] / "target") == bits(dumps[name] / "golden")


@pytest.mark.parametrize("name", each(name for name in BUGS if name not in KNOWN_MISSES))
def test_a_planted_bug_is_found(answers, name):
    result = answers[name]
    assert result.right, f"{result.answer}; right: {result.truth['accept']}"


def test_there_are_enough_of_them():
    assert len(BUGS) >= 40 and len(KNOWN_MISSES) <= 0.05 * len(BUGS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_about_these_cases(language):
    text = (REPO / "docs" / language / "compare" / "layouts.md").read_text()
    assert [name for name in BUGS if f"\n| {name} |" not in text] == []
    assert [layout for layout in {n.split("_", 1)[1] for n in BITS} if f"\n| {layout} |" not in text] == []

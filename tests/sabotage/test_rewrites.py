"""Runs that compute the same in another way, or round in another way, are not called a bug; bugs planted on top of that are found."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from launch import REPO, run_python
from make_dumps import OTHER_WAYS, other_ways
from score import results_of

HERE = Path(__file__).resolve().parent
SETS = other_ways()
PAIRS = {case.name: directory for directory in ("rewrites", "rounding") for case in SETS[directory]}
# Pairs without a bug of which an op is called suspicious, and why.
KNOWN_DOUBTS = {}
# Bugs whose answer is not right, and why.
KNOWN_MISSES = {
    "short_window_on_rotary_by_complex_md5": "an op of the other form of rotary positions, in the same module, is named",
}
# Of `make test`: one of each way to see that the results agree.
QUICK = (
    "residual_first_mini_gpt calls_swapped_gated_L1 values_first_gated_L1 gate_behind_up_gated silu_by_sigmoid_gated_L1 threads_moe_md5"
    " fused_adam_steps_L0 samples_permuted softmax_dim_on_linear_by_matmul relu_for_silu_on_values_first"
    " drift_graph mask_lets_next_through_on_drift other_rate_fused_for_a_loop scaled_in_place adapter_on_norm_by_vector_norm"
).split()


def asked_for(session):
    tests = [item for item in session.items if "answers" in getattr(item, "fixturenames", ())]
    names = [item.callspec.params.get("name") if hasattr(item, "callspec") else None for item in tests]
    return [] if None in names else names


@pytest.fixture(scope="session")
def answers(request, tmp_path_factory):
    """{name: Result} of the cases that are asked for."""
    root = tmp_path_factory.mktemp("rewrites")
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    arguments = ["--sets", *OTHER_WAYS, "--only", *asked_for(request.session)]
    run_python([HERE / "make_dumps.py", root, *arguments], cwd=root, env=environment, fresh=True, timeout=1800)
    return {name: one for directory in root.iterdir() for name, one in results_of(directory).items()}


def each(names):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.deep) for name in names]


@pytest.mark.parametrize("name", each(PAIRS))
def test_the_same_in_another_way_is_no_bug(answers, name):
    result = answers[name]
    assert result.answer.kind != "failed", result.answer
    assert result.bugs == 0 and result.answer.verdict != "bug", result.answer
    assert result.claims == []
    assert name in KNOWN_DOUBTS or result.answer.verdict != "suspicious", result.answer


@pytest.mark.parametrize("name", each(case.name for case in SETS["on_top"] if case.name not in KNOWN_MISSES))
def test_a_bug_on_top_is_found(answers, name):
    result = answers[name]
    assert result.right, f"{result.answer}; right: {result.truth['accept']}"


def test_there_are_enough_of_them():
    """At most 2 % of the pairs are doubted, and 9 of 10 bugs are found."""
    assert len(PAIRS) >= 100 and len(KNOWN_DOUBTS) <= 0.02 * len(PAIRS)
    assert len(SETS["on_top"]) >= 30 and len(KNOWN_MISSES) <= 0.1 * len(SETS["on_top"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_about_these_cases(language):
    text = (REPO / "docs" / language / "compare" / "rewrites.md").read_text()
    assert [case.name for cases in SETS.values() for case in cases if f"\n| {case.name} |" not in text] == []

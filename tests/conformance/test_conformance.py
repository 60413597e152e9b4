"""The same training, captured by the earlier tool and by ours in the same state of the process: the dumps are the same.

Names, counts, order, fields and their order, values, parents and call stacks of every step and rank; rules.py names what
differs on purpose. Most models are held against what the earlier tool wrote once (recorded.py): values of the first step up to
rounding. Of two models it writes its dumps here and now, and values are equal to the bit; where it changes the bits of the
training, values after the first gradient cannot be: there they are compared up to rounding, and in the next step by their
shape only.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from captures import COMPARED, captures, steps_of  # noqa: F401 - fixtures
from comparison import ROUNDING, SHAPE, Comparison
from models import MODELS
from recorded import CHECKED, read_recorded
from rules import ALL_RULES


@pytest.mark.parametrize("config", COMPARED)
@pytest.mark.parametrize("model", MODELS)
def test_dumps_are_the_same(old_python, captures, model, config):  # noqa: F811
    found = captures.compare(model, config)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:40])


@pytest.mark.parametrize("config", COMPARED)
@pytest.mark.parametrize("model", [CHECKED])
def test_recorded_answers_are_the_earlier_tools(old_python, captures, model, config):  # noqa: F811
    recorded = read_recorded(model)
    if recorded is None:
        pytest.skip("recorded with other versions: all models are compared here and now")
    for step, (live, kept) in enumerate(
        zip(steps_of(captures, model, "theirs", config), recorded[config], strict=True)
    ):
        for now, then in zip(live, kept, strict=True):
            assert Comparison(now, then, [], SHAPE if step else ROUNDING).found == []


def test_no_rule_is_out_of_date(old_python, captures):  # noqa: F811
    if len(captures.rows) < len(MODELS) * len(COMPARED):
        pytest.skip("needs the comparisons of all models")
    assert [rule for rule in ALL_RULES if rule not in captures.used] == []

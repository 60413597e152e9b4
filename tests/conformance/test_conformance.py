"""The same training, captured by the earlier tool and by ours in the same state of the process: the dumps are the same.

Names, counts, order, fields and their order, values, parents and call stacks of every step and rank; rules.py names what
differs on purpose. Where the earlier tool changes the bits of the training, values after the first gradient cannot be
equal: there they are compared up to rounding, and in the next step by their shape only.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from captures import COMPARED, captures  # noqa: F401 - fixtures
from models import MODELS
from rules import ALL_RULES


@pytest.mark.parametrize("config", COMPARED)
@pytest.mark.parametrize("model", MODELS)
def test_dumps_are_the_same(old_python, captures, model, config):  # noqa: F811
    found = captures.compare(model, config)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:40])


def test_no_rule_is_out_of_date(old_python, captures):  # noqa: F811
    if len(captures.rows) < len(MODELS) * len(COMPARED):
        pytest.skip("needs the comparisons of all models")
    assert [rule for rule in ALL_RULES if rule not in captures.used] == []

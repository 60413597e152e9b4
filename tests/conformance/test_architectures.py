"""Architectures of transformers and families of networks under both tools, which run here and now, at levels L0 and mix.

Names, order, fields and every value agree, or differ by a rule of rules.py. The whole table: publish_architectures.py.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from architectures import ARCHITECTURES
from captures import BARE, both_tools
from families import FAMILIES, levels_of

CASES = [(model, level) for model in (*FAMILIES, *ARCHITECTURES) for level in levels_of(model)]


@pytest.fixture(scope="session")
def trainings(request, old_python, tmp_path_factory):
    """Of the models whose tests were asked for."""
    items = [item for item in request.session.items if item.path.name == Path(__file__).name]
    models = list(dict.fromkeys(item.callspec.params["model"] for item in items))
    found = both_tools(old_python, models, tmp_path_factory.mktemp("architectures"))
    yield found
    found.stop()


@pytest.mark.parametrize(("model", "level"), CASES)
def test_both_tools_write_the_same(trainings, model, level):
    found = trainings.compare(model, level)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:40])
    assert trainings.bits(model, "ours", level) == trainings.bits(model, "ours", BARE)

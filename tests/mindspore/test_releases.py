"""Releases of MindSpore before 2.10 tell no hook of a Cell that raised: the same entries and tree (older_release.py).

What else they lack is tested with them (tests/versions).
"""

import json
import pathlib

import pytest
from launch import run_mindspore

SCRIPT = pathlib.Path(__file__).parent / "capture_scenario.py"


@pytest.fixture(scope="module")
def both(tmp_path_factory, mindspore_python):
    """both(model, config) -> ((entries, tree of Cells, what was printed) of the newest, the same of the older)."""

    def run(model, **config):
        found = []
        for release in ([], ["1", "older"]):
            dump = tmp_path_factory.mktemp(model) / "dump"
            done = run_mindspore([mindspore_python, SCRIPT, model, dump, json.dumps(config), *release], timeout=120)
            assert done.returncode == 0, done.stderr[-2000:]
            rank = dump / "step0" / "rank"
            entries, tree = (json.loads((rank / name).read_text()) for name in ("dump.json", "construct.json"))
            found.append((entries["data"], tree, done.stdout))
        return found

    return run


def test_an_older_release_records_the_same(both):
    newest, older = both("small", level="mix")
    assert newest == older
    entries, tree, _ = older
    assert entries["Cell.second.Dense.backward.0"]["output"][0]["shape"] == [3, 4]
    assert "Cell.second.Dense.parameters_grad.0" in entries
    assert tree["Primitive.matmul.MatMul.1.forward"] == "Cell.second.Dense.forward.0"


def test_a_cell_that_raised_has_ended(both):
    """No hook tells it in an older release: the next call outside of the Cell does."""
    newest, older = both("caught", level="mix")
    for entries, tree, _ in (newest, older):
        assert tree["Functional.abs.0.forward"] == "Cell.brittle.Brittle.forward.0"
        assert tree["Functional.tanh.0.forward"] is None
        assert entries["Cell.brittle.Brittle.forward.0"]["output"] == [None]
    assert newest[0].keys() == older[0].keys() and newest[1:] == older[1:]

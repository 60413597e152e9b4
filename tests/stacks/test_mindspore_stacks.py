"""mindone and MindCV, as the guide of stacks shows: lines in the loop or a callback, `msprobe run`, and the two lines of TrainerMon."""

import json
import math
import re
from typing import NamedTuple

import pytest
from small import STEPS
from test_stacks import CONFIG, HERE, LINES, Runs

pytestmark = pytest.mark.deep
MONITOR = {"targets": {}, **{f"{key}_distribution": True for key in ("wg", "mv", "param")}, "ops": ["norm", "nans"]}
SETTINGS = {"GLOG_v": "4", "MONITOR_OUTPUT_DIR": "monitored"}


class Stack(NamedTuple):
    script: str
    first: str  # the Cell whose inputs the script tells
    last: str
    faulty: str
    prefixes: dict  # of names, by the way: what is recorded begins at the Cell that is called, or given
    ranks: int = 1
    options: tuple = ()


STACKS = {
    "mindone": Stack(
        "mindone_trainer.py",
        "model.embed_tokens.Embedding",
        "lm_head.Dense",
        "model.layers.1.post_attention_layernorm",
        {"run": "network.network.model.", "inserted": ""},
    ),
    "mindcv": Stack(
        "mindcv_train.py",
        "conv1.Conv2d",
        "classifier.Dense",
        "layer2.0.conv1",
        {"run": "", "inserted": "network._backbone."},
    ),
}


class OneProcess(Runs):
    def __init__(self, stack, python, directory):
        self.stack, self.python, self.directory = stack, python, directory
        script, text = HERE / stack.script, (HERE / stack.script).read_text()
        inserted = directory / stack.script
        inserted.write_text(text.replace(LINES, ""))
        run = ("run", "--config", "config.json", "--")
        self._way("bare", (), script)
        self._way("inserted", (), inserted, *(() if LINES in text else ("--insert",)))
        self._way("run", run, script)
        self._way("faulty", run, script, "--fault")
        self._way("monitor", (), script, "--monitor")

    def _prepare(self, directory):
        (directory / "config.json").write_text(json.dumps(CONFIG))
        (directory / "monitor.json").write_text(json.dumps(MONITOR))
        return SETTINGS


@pytest.fixture(scope="module", params=STACKS)
def runs(request, mindone_python, tmp_path_factory):
    return OneProcess(STACKS[request.param], mindone_python, tmp_path_factory.mktemp(request.param))


def test_the_same_bits(runs):
    (bare,) = runs.told("bare")
    assert len(bare["losses"]) == len(bare["gradients"]) == len(bare["inputs"]) == STEPS
    assert all(math.isfinite(float.fromhex(loss)) for loss in bare["losses"])
    for way in ("inserted", "run", "monitor"):
        assert runs.told(way) == [bare], way
    assert runs.told("faulty") != [bare]


@pytest.mark.parametrize("way", ["inserted", "run"])
def test_steps(runs, way):
    dumps, (told,) = runs.dumps(way), runs.told("bare")
    assert sorted(dumps) == [(step, 0) for step in range(STEPS)]
    prefix = runs.stack.prefixes[way]
    for (step, _), ops in dumps.items():
        first = ops[f"Cell.{prefix}{runs.stack.first}.forward.0"]["input_args"][0]
        assert first["Mean"] == pytest.approx(told["inputs"][step], rel=1e-4, abs=1e-8)
        for side in ("forward", "backward", "parameters_grad"):
            calls = [op for op in ops if op.startswith(f"Cell.{prefix}{runs.stack.last}.{side}.")]
            assert calls == [f"Cell.{prefix}{runs.stack.last}.{side}.0"]
    assert not re.search(r"\[ERROR\] \[msprobe\]", (runs.directory / way / "log").read_text())


def test_both_ways_record_the_same(runs):
    ours, theirs = runs.dumps("run"), runs.dumps("inserted")
    for place, ops in ours.items():
        sides = [
            {op.replace(f"Cell.{runs.stack.prefixes[way]}", "Cell.", 1): entry for op, entry in side.items()}
            for way, side in (("run", ops), ("inserted", theirs[place]))
        ]
        both = [op for op in sides[0] if op.startswith("Cell.") and op in sides[1]]
        assert len(both) > 50 and all(sides[0][op] == sides[1][op] for op in both)
    assert runs.compare("run", "inserted").startswith("No difference")


def test_a_planted_fault_is_named(runs):
    said = runs.compare("faulty", "run")
    (origin,) = [line for line in said.splitlines() if line.startswith("Origin: ")][:1]
    assert re.search(rf"Origin: {re.escape(runs.stack.prefixes['run'] + runs.stack.faulty)}[.:] ?.*step 0\)", origin), (
        said[:2000]
    )


def test_the_monitor(runs):
    (told,), metrics = runs.told("bare"), runs.monitored(0)
    for step, norms in enumerate(told["gradients"]):
        for name, norm in norms.items():
            assert metrics["grad_reduced"][step, name] == pytest.approx(norm, rel=1e-4, abs=2e-6), (step, name)
    for metric in ("exp_avg", "exp_avg_sq", "param_origin", "param_updated"):
        assert metrics[metric].keys() == metrics["grad_reduced"].keys()
        assert all(map(math.isfinite, metrics[metric].values()))


def test_the_earlier_tool_reads_them(runs, old_mindspore_python):
    runs.read_by(old_mindspore_python)


def test_the_guides_show_these_lines():
    for language in ("en", "zh"):
        shown = (HERE.parents[1] / "docs" / language / "capture" / "stacks.md").read_text(encoding="utf-8")
        lines = (HERE / "mindcv_train.py").read_text().splitlines() + (
            HERE / "mindspore_told.py"
        ).read_text().splitlines()
        wanted = [line.replace(LINES, "").strip() for line in lines if re.match(rf" *({LINES}|monitor[ .])", line)]
        assert len(wanted) == 5
        assert all(line in shown for line in wanted), (language, wanted)

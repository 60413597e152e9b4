"""Runs every model under both tools, in two processes beside the tests, and gives the results as they come."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from catalogue import steps
from comparison import BITS, BITS_OF_FORWARD, ROUNDING, SHAPE, Comparison, read
from families import levels_of
from launch import HERE as TESTS
from launch import PACKAGE_ROOT, REPO
from models import MODELS, WORLD
from recorded import LIVE, read_recorded
from rules import further_rules_of, rules_of

HERE = Path(__file__).resolve().parent
LEVELS = ("L0", "L1", "mix")


def configuration(level, task="statistics", summary_mode="statistics", only=(), async_dump=False):
    section = {"scope": [], "list": list(only), "data_mode": ["all"], "summary_mode": summary_mode}
    return {"task": task, "level": level, "rank": [], "step": [], "async_dump": async_dump, task: section}


# Compared with the earlier tool's.
COMPARED = {
    **{level: configuration(level) for level in LEVELS},
    "mix-md5": configuration("mix", summary_mode="md5"),
    "mix-xor": configuration("mix", summary_mode="xor"),
    "mix-tensor": configuration("mix", task="tensor"),
}
# Only held against a training without any tool.
OURS = {
    **COMPARED,
    **{f"{level}-md5": configuration(level, summary_mode="md5") for level in ("L0", "L1")},
    **{f"{level}-tensor": configuration(level, task="tensor") for level in ("L0", "L1")},
    **{f"{level}-async": configuration(level, async_dump=True) for level in LEVELS},
    # With a list, without which this is refused; every name has a dot.
    **{f"{level}-tensor-async": configuration(level, task="tensor", only=["."], async_dump=True) for level in LEVELS},
}
BARE = "bare"


def ours_of(model):
    """What a model is recorded with: all that is compared, and of the rest every other one, so that neighbours in the list of
    models have different ones. MSPROBE_CONFORMANCE=live: all."""
    if os.environ.get("MSPROBE_CONFORMANCE") == "live":
        return OURS
    rest = [name for name in OURS if name not in COMPARED]
    return {**COMPARED, **{name: OURS[name] for name in rest[list(MODELS).index(model) % 2 :: 2]}}


class Row(NamedTuple):
    model: str
    config: str
    entries: int
    tensors: int
    precision: str
    differences: int  # of all steps and ranks
    allowed: int
    agree: Counter = Counter()  # how many values of the first step are equal, by how exactly
    classes: Counter = Counter()  # how many differences of the first step each row of docs/compatibility.md allows


class Captures:
    def __init__(self, plans, root, recorded=None, rules=rules_of):
        """plans: {tool: (interpreter, {model: configurations})}; recorded: {model: read_recorded()}; rules: of a model."""
        self.rules = rules
        self.root, self.rows, self.used, self.recorded = root, [], Counter(), recorded or {}
        self._workers = {}
        for tool, (python, configurations) in plans.items():
            paths = [HERE, TESTS, PACKAGE_ROOT] if tool == "ours" else [HERE, TESTS]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
            environment.update(PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
            environment["PYTHONHASHSEED"] = "0"  # some models walk over sets (ModernBert)
            with open(root / f"{tool}.txt", "w") as log:
                self._workers[tool] = subprocess.Popen(
                    [python, HERE / "capture_one.py", tool, root, json.dumps(configurations)],
                    stdout=log,
                    stderr=log,
                    cwd=root,
                    env=environment,
                )

    def stop(self):
        for worker in self._workers.values():
            worker.kill()
            worker.wait()

    def _wait(self, model, tool):
        done = self.root / model / tool / "done"
        while not done.exists():
            assert self._workers[tool].poll() is None or done.exists(), (self.root / f"{tool}.txt").read_text()[-3000:]
            time.sleep(0.05)
        return done.parent

    def bits(self, model, tool, config):
        """What the training computed, by rank."""
        directory = self._wait(model, tool) / config
        files = sorted(directory.glob("bits*.json"))
        log = "\n".join(path.read_text()[-3000:] for path in directory.glob("log*.txt"))
        assert len(files) == WORLD.get(model, 1), log
        return [json.loads(path.read_text()) for path in files]

    def log(self, model, config):
        directory = self._wait(model, "ours") / config
        return "\n".join(path.read_text() for path in directory.glob("log*.txt"))

    def dumps(self, model, tool, config, step):
        """The dumps of one step, by rank."""
        return [read(path) for path in sorted((self._wait(model, tool) / config / "dump" / f"step{step}").iterdir())]

    def _their_side(self, model, config):
        """What the earlier tool wrote in each step, and how exactly it can be compared in the first and the others."""
        if model in self.recorded:
            return self.recorded[model][config], (ROUNDING, SHAPE)
        # Where the earlier tool changes what is computed, from the second step on nothing is the same any more.
        same = self.bits(model, "ours", BARE) == self.bits(model, "theirs", config)
        first = BITS if same else BITS_OF_FORWARD
        if any(rule.path == "computes" for rule in self.rules(model)):
            first = ROUNDING
        return steps_of(self, model, "theirs", config), (first, BITS if same else SHAPE)

    def compare(self, model, config):
        """What differs and no rule allows, of all steps and ranks."""
        theirs, (of_first, of_others) = self._their_side(model, config)
        found, first = [], None
        for step, (mine, others) in enumerate(zip(steps_of(self, model, "ours", config), theirs, strict=True)):
            precision = of_others if step else of_first
            assert [len(mine), len(others)] == [WORLD.get(model, 1)] * 2
            for ours, other in zip(mine, others):
                result = Comparison(ours, other, self.rules(model), precision)
                found += [f"step {step}, {ours.directory.name}: {line}" for line in result.found]
                self.used.update(result.allowed)
                if first is None:
                    classes = Counter()
                    for rule, count in result.allowed.items():
                        classes[rule.row] += count
                    first = (len(ours.data), ours.tensors, precision), result.agree, classes
        (entries, tensors, precision), agree, classes = first
        self.rows.append(Row(model, config, entries, tensors, precision, len(found), classes.total(), agree, classes))
        return found


def steps_of(captures, model, tool, config):
    """[[Dump of each rank] of each step]."""
    captures.bits(model, tool, config)
    return [captures.dumps(model, tool, config, step) for step in range(steps(model))]


@pytest.fixture(scope="session")
def captures(request, tmp_path_factory):
    """Of the models whose tests were asked for. MSPROBE_CONFORMANCE=live asks the earlier tool about all of them."""
    asked = {item.callspec.params.get("model") for item in request.session.items if hasattr(item, "callspec")}
    python = Path(os.environ.get("MSPROBE_OLD_PYTHON", REPO / ".venv-old" / "bin" / "python"))
    models = [model for model in MODELS if model in asked]
    plans = {"ours": (sys.executable, {model: {BARE: None, **ours_of(model)} for model in models})}
    live = models if os.environ.get("MSPROBE_CONFORMANCE") == "live" else LIVE
    recorded = {model: read_recorded(model) for model in models if model not in live}
    recorded = {model: dumps for model, dumps in recorded.items() if dumps}
    if (python.parent / "msprobe").exists():
        plans["theirs"] = (python, {model: COMPARED for model in models if model not in recorded})
    found = Captures(plans, tmp_path_factory.mktemp("conformance"), recorded)
    yield found
    found.stop()
    if found.rows:
        write_report(found, REPO / "out" / "conformance.md")


def write_report(captures, path):
    lines = [
        "| model | level, task | entries | tensors | compared to the | differences | allowed by rules |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.model} | {r.config} | {r.entries} | {r.tensors} | {r.precision} | {r.differences} | {r.allowed} |"
        for r in captures.rows
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    print("\n" + path.read_text())


def both_tools(old_python, models, root):
    """Captures of architectures.py and families.py, of which nothing is recorded."""
    theirs = {model: {level: COMPARED[level] for level in levels_of(model)} for model in models}
    ours = {model: {BARE: None, **configurations} for model, configurations in theirs.items()}
    return Captures({"ours": (sys.executable, ours), "theirs": (old_python, theirs)}, root, rules=further_rules_of)

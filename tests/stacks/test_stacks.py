"""Accelerate, Lightning, LLaMA-Factory, DeepSpeed and mmengine, as the guide of stacks shows: lines in the loop, `msprobe run`, `msprobe monitor`.

Each stack trains a small model bare and then in each of these ways: steps, ranks and micro steps are those of the training, its
bits are the same, both ways record the same, and a planted fault is named.
"""

import csv
import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from insertions import INSERTIONS
from small import MICRO, STEPS

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.deep
LINES = "# msprobe: "  # what stands behind it in a script is inserted by its user
# mmengine prepares a batch before it calls the model, where a step of `msprobe run` begins.
MODULES = r"(Module|Functional)\.(?!.*data_preprocessor)"
# Of a model that is not trained, and what is called inside of a wrapper only.
OTHERS = re.compile(r"Module\.([1-9]\.|Qwen2ForCausalLM\.)")
CONFIG = {"task": "statistics", "level": "mix", "dump_path": "dump", "step": []}


class Stack(NamedTuple):
    script: str
    python: str  # the fixture that names the interpreter
    ranks: int = 2
    options: tuple = ()
    faulty: str = "blocks.1.norm"
    parted: bool = False  # ranks keep parts of gradients
    weights: tuple = ("param_origin", "param_updated")
    last: str = r"(lm_)?head\.Linear"  # a module at the end, called in each micro batch
    match: tuple = ()  # options of the comparison of both ways; None: their modules have other names


STACKS = {
    "accelerate": Stack("accelerate_loop.py", "stacks_python"),
    "lightning": Stack("lightning_fit.py", "stacks_python"),
    "llamafactory": Stack("llamafactory_sft.py", "llamafactory_python", faulty="layers.1.post_attention_layernorm"),
    # Their losses multiply by the weight of lm_head without calling it. GRPOTrainer calls the model for the first time without
    # what wraps it, to generate, and there `msprobe run` takes the names.
    **{
        name: Stack(
            f"{name}.py",
            "trl_python",
            faulty="layers.1.post_attention_layernorm",
            last=r"layers\.2\.mlp\.down_proj\.Linear",
            match=match,
        )
        for name, match in (("trl_sft", ()), ("trl_grpo", None))
    },
    # The lines also record what is counted before the model is called: calls have other numbers then.
    "torchtitan": Stack(
        "titan_llama.py",
        "titan_python",
        faulty="layers.1._checkpoint_wrapped_module.ffn_norm",
        last=r"layers\.2\._checkpoint_wrapped_module\.feed_forward\.w2\.Linear",
        match=("-fm",),
    ),
    **{
        f"zero{stage}": Stack("deepspeed_zero.py", "stacks_python", options=(str(stage),), parted=True)
        for stage in (1, 2, 3)
    },
    "mmengine": Stack("mmengine_loop.py", "mmengine_python"),
}


def _plain(op):
    """Without the number of a part in a list, and without the wrapper for several processes."""
    return re.sub(r"^Module\.(0|module)\.", "Module.", op)


class Runs:
    """All ways of one stack."""

    def __init__(self, stack, python, directory):
        self.stack, self.python, self.directory = stack, python, directory
        text = (HERE / stack.script).read_text()
        inserted = directory / stack.script
        inserted.write_text(text.replace(LINES, ""))
        here = () if LINES in text else ("--insert",)
        script, run = HERE / stack.script, ("run", "--config", "config.json", "--")
        if (HERE / stack.script).read_text().find("--files") > 0:
            (directory / "files").mkdir()
            self._start("files_log", [python, script, directory / "files", "--files"])
        self._way("bare", (), script)
        self._way("inserted", (), script if here else inserted, *here)
        self._way("run", run, script)
        self._way("faulty", run, script, "--fault")
        self._way("monitor", ("monitor", "--output", "monitored", "--csv", "--"), script)

    def _way(self, name, command, script, *more):
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={self.stack.ranks}"]
        program = [self.python, *(launch if self.stack.ranks > 1 else ()), script, ".", *self.stack.options, *more]
        self._start(name, [*([self.command, *command] if command else ()), *program])

    @property
    def command(self):
        return self.python.parent / "msprobe"

    def _prepare(self, directory):
        """Returns more settings of the environment."""
        (directory / "config.json").write_text(json.dumps(CONFIG))
        return {}

    def _start(self, name, command, again=True):
        directory = self.directory / name
        directory.mkdir()
        settings = self._prepare(directory)
        own = {
            **settings,
            "PYTHONPATH": str(HERE),
            "OMP_NUM_THREADS": "1",
            "DS_ACCELERATOR": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [*map(str, command)], cwd=directory, env={**os.environ, **own}, capture_output=True, text=True, timeout=300
        )
        # Now and then a process of gloo ends so, also where the tool records nothing.
        if again and done.returncode != 0 and "terminate called without an active exception" in done.stderr:
            shutil.rmtree(directory)
            self._start(name, command, again=False)
            return
        assert done.returncode == 0, f"{name}: {done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        (directory / "log").write_text(done.stdout + done.stderr)

    def told(self, name):
        """Of each rank."""
        return [json.loads((self.directory / name / f"told{r}.json").read_text()) for r in range(self.stack.ranks)]

    def dumps(self, name):
        """(step, rank) -> {op: entry}."""
        found = {}
        for path in (self.directory / name / "dump").glob("*/*/dump.json"):
            step, rank = (re.fullmatch(r"[a-z]+(\d*)", part)[1] for part in path.parts[-3:-1])
            found[int(step), int(rank or 0)] = json.loads(path.read_text())["data"]
        return found

    def compare(self, target, golden, *more):
        sides = ["-tp", self.directory / target / "dump", "-gp", self.directory / golden / "dump"]
        command = [self.command, "compare", *sides, "-o", self.directory / f"{target}_{golden}", *more]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        return done.stdout

    def read_by(self, earlier):
        """mindstudio-probe finds each row's partner, and that values differ; it takes no directory of a rank without a number."""
        sides, out = [], self.directory / "earlier"
        for option, way in (("-tp", "faulty"), ("-gp", "run")):
            step = self.directory / f"{way}_step0"
            shutil.copytree(self.directory / way / "dump" / "step0", step)
            if (step / "rank").exists():
                (step / "rank").rename(step / "rank0")
            sides += [option, step]
        done = subprocess.run(
            [earlier.parent / "msprobe", "compare", *sides, "-o", out], capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        tables = [*out.rglob("*.csv")]
        assert len(tables) == self.stack.ranks
        for table in tables:
            with table.open(encoding="utf-8-sig", newline="") as file:
                rows = list(csv.DictReader(file))
            assert len(rows) > 60 and {row["Bench Name"] for row in rows}.isdisjoint({"N/A", ""})
            assert any(row["NPU max"] != row["Bench max"] for row in rows)

    def monitored(self, rank):
        """Metric -> {(step, parameter): norm}."""
        (directory,) = (self.directory / "monitor" / "monitored").glob(
            f"*-rank{rank}-*" if self.stack.ranks > 1 else "*"
        )
        found = {}
        for path in directory.glob("*.csv"):
            metric = found.setdefault(path.name.rsplit("_", 1)[0], {})
            with path.open(newline="") as file:
                rows = [row for row in csv.DictReader(file) if "norm" in row]  # a loss, a rate or a checksum has none
            metric.update({(int(row["step"]), row["name"]): float(row["norm"]) for row in rows})
        return found


@pytest.fixture(scope="module", params=STACKS)
def runs(request, tmp_path_factory):
    stack = STACKS[request.param]
    return Runs(stack, request.getfixturevalue(stack.python), tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("way", ["inserted", "run"])
def test_steps_ranks_and_micro_steps(runs, way):
    dumps, told = runs.dumps(way), runs.told("bare")
    assert sorted(dumps) == [(step, rank) for step in range(STEPS) for rank in range(runs.stack.ranks)]
    for (step, rank), ops in dumps.items():
        embed = re.compile(r"(?!Module\.1\.).*\.(tok_)?embed(_tokens|dings)?\.\w+\.forward\.\d+$")
        first = {op: entry for op, entry in ops.items() if embed.match(op)}
        start, end = (told[rank]["starts"] + [None])[step : step + 2]
        calls = told[rank]["inputs"][start:end]
        assert [int(op.rsplit(".", 1)[1]) for op in first] == [*range(len(calls))] and len(calls) >= MICRO
        means = [entry["input_args"][0]["Mean"] for entry in first.values()]
        assert means == pytest.approx(calls, rel=1e-5)
        for side in ("backward", "parameters_grad"):
            assert sum(bool(re.search(rf"\.{runs.stack.last}\.{side}\.", op)) for op in ops) == MICRO
    log = (runs.directory / way / "log").read_text()
    assert not re.search(r"\[(WARNING|ERROR)\] \[msprobe\]", log), log


@pytest.mark.parametrize("way", ["inserted", "run", "monitor"])
def test_the_same_bits(runs, way):
    assert runs.told(way) == runs.told("bare")
    for told in runs.told("bare"):
        assert len(told["losses"]) >= STEPS and all(math.isfinite(float.fromhex(loss)) for loss in told["losses"])


def test_both_ways_record_the_same(runs):
    """What a trainer does between two micro batches, and behind the optimizer's step, belongs to one of them alone."""
    ours, theirs = runs.dumps("run"), runs.dumps("inserted")
    for place, ops in ours.items():
        own, other = (
            {_plain(op): entry for op, entry in side.items() if re.match(MODULES, op)} for side in (ops, theirs[place])
        )
        own, other = ({op: entry for op, entry in side.items() if not OTHERS.match(op)} for side in (own, other))
        assert own.keys() == other.keys() and len(own) > 50
        assert runs.stack.match is not None or own == other
    if runs.stack.match is None:
        return
    said = runs.compare("run", "inserted", *runs.stack.match)
    # The bucket of stage 3 was allocated before recording began, so that nothing says that a part of it was never written.
    bucket = runs.stack.options == ("3",) and "Tensor.narrow" in said and "__add_grad_to_ipg_bucket" in said
    assert said.startswith("No difference") or bucket, said[:2000]


def test_a_planted_fault_is_named(runs):
    said = runs.compare("faulty", "run")
    (origin,) = [line for line in said.splitlines() if line.startswith("Origin: ")][:1]
    assert re.search(rf"Origin: \S*\b{re.escape(runs.stack.faulty)}[.:] ?.*step 0\)", origin), said[:2000]


def test_the_monitor(runs):
    """Where ranks keep parts of a gradient, the norm of the whole is that of the parts."""
    told = runs.told("bare")
    ranks = [runs.monitored(rank) for rank in range(len(told))]
    parts = [ranks] if runs.stack.parted else [[metrics] for metrics in ranks]
    for own, metrics in zip(told, parts):
        assert len(own["gradients"]) == STEPS
        for step, norms in enumerate(own["gradients"]):
            for name, norm in norms.items():
                rows = (m["grad_reduced"].items() for m in metrics)
                seen = [
                    v
                    for row in rows
                    for (s, key), v in row
                    if s == step and re.search(rf"(^|\.){re.escape(name)}$", key)
                ]
                assert seen and math.hypot(*seen) == pytest.approx(norm, rel=1e-4, abs=2e-6), (step, name)
    for metrics in ranks:
        for metric in ("grad_unreduced", "grad_reduced", *runs.stack.weights):
            assert {step for step, _ in metrics[metric]} == {*range(STEPS)}, metric
            assert all(map(math.isfinite, metrics[metric].values()))
        for metric in ("exp_avg", "exp_avg_sq"):  # there are none before the first step
            assert {step for step, _ in metrics[metric]} == {*range(1, STEPS)}
    log = (runs.directory / "monitor" / "log").read_text()
    assert "never had a value" not in log and "[ERROR] [msprobe]" not in log, log


def test_the_earlier_tool_reads_them(runs, old_python):
    runs.read_by(old_python)


def test_the_guides_show_these_lines():
    for language in ("en", "zh"):
        guide = (HERE.parents[1] / "docs" / language / "capture" / "stacks.md").read_text(encoding="utf-8")
        shown = {line.strip() for line in guide.splitlines()}
        for stack in STACKS.values():
            lines = [line.strip() for line in (HERE / stack.script).read_text().splitlines()]
            wanted = {line.removeprefix(LINES.strip()).strip() for line in lines if line.startswith(LINES.strip())}
            assert wanted - {""} <= shown, (language, stack.script, wanted - shown)
        for edits in INSERTIONS.values():
            parts = [part for anchor, *added in edits for part in (*anchor.split("|"), *added)]
            wanted = {line.strip() for part in parts for line in part.splitlines()}
            assert wanted <= shown, (language, wanted - shown)

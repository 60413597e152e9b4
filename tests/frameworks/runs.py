"""Records the networks and the planted bugs in the interpreters of both frameworks, and asks the command about them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sabotage"))

from case import Place, read_dump
from data import NETWORKS
from graph_cases import find_command
from planted import BUGS, HELD_OUT, LATER
from score import answer_of

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
FRAMEWORKS = ("mindspore", "pytorch")
WAYS = tuple((level, task) for level in ("L0", "mix") for task in ("statistics", "tensor"))
# The same weights in other layouts: (network of MindSpore, network of PyTorch).
FUSED = (("llama_fused", "llama"), ("llama", "llama_fused"), ("llama_fused", "llama_fused"))
OTHER = {"mindspore": "pytorch", "pytorch": "mindspore"}


def source_of(framework, network):
    return HERE / f"{framework}_networks" / f"{network}.py"


def dump_of(root, framework, network, level="mix", task="statistics"):
    return root / framework / f"{network}_{level}_{task}"


def line_of(bug):
    text = source_of(bug.side, bug.network).read_text(encoding="utf-8")
    return text[: text.index(bug.old)].count("\n") + 1


def edited(root, bug):
    """The file of a network with the bug in it."""
    text = source_of(bug.side, bug.network).read_text(encoding="utf-8")
    assert text.count(bug.old) == 1, f"{bug.name}: {bug.old!r} occurs {text.count(bug.old)} times"
    path = root / "sources" / f"{bug.name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
    return path


def jobs_of(root, framework, networks, ways, bugs):
    jobs = [
        {"network": network, "level": level, "task": task, "source": str(source_of(framework, network))}
        | {"out": str(dump_of(root, framework, network, level, task))}
        for network in networks
        for level, task in ways
    ]
    for bug in bugs:
        if bug.side == framework:
            job = {"network": bug.network, "level": "mix", "task": "statistics", "source": str(edited(root, bug))}
            jobs.append(job | {"out": str(root / "bugs" / bug.name)})
    return jobs


def record(root, mindspore_python, networks=(*NETWORKS, "llama_fused"), ways=WAYS, bugs=(*BUGS, *HELD_OUT, *LATER)):
    """One interpreter for each framework, side by side."""
    running = []
    for framework, python in (("pytorch", sys.executable), ("mindspore", os.path.abspath(mindspore_python))):
        jobs = root / f"jobs_{framework}.json"
        jobs.parent.mkdir(parents=True, exist_ok=True)
        jobs.write_text(json.dumps(jobs_of(root, framework, networks, ways, bugs)))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTHONPATH", None)
        log = open(root / f"log_{framework}.txt", "w")
        command = [str(python), str(HERE / "capture.py"), framework, str(jobs)]
        running.append((subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=root), log))
    for process, log in running:
        code = process.wait()
        log.close()
        assert code == 0, Path(log.name).read_text()[-3000:]


def compare(target, golden, out, *options):
    command = [find_command(), "compare", "-tp", target, "-gp", golden, "-o", out, "--json", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr[-1500:]
    return json.loads(done.stdout)


def plan_of(target, golden, *options):
    command = [find_command(), "compare", "-tp", target, "-gp", golden, "--plan", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["matches"][0]


# ---- clean pairs ------------------------------------------------------------------------------------------------------------


class Clean(NamedTuple):
    pairs: int  # ops of the target that have a partner and values in common with it
    equal: int  # of these: bit-equal, within round-off, computed another way with the same result
    computing: int  # functions that compute, on the side that has fewer of them
    paired: int  # of these: with a partner
    every: float  # the share with a partner, modules counted too
    bugs: int
    suspicious: int
    named: str  # what is called the first difference, if anything is


def moving_functions():
    """Functions that only move elements: names in the table of the product."""
    text = (REPO / "src" / "ops" / "framework_names.def").read_text()
    return {name for names in re.findall(r'^MOVES\(\w+, "([^"]+)"\)', text, re.MULTILINE) for name in names.split()}


def computes(op, moving):
    parts = op.split(".")
    own = {"Primitive": 2, "Cell": -3, "Module": -3}.get(parts[0], 1)
    return parts[own].lower().strip("_") not in moving


def clean_result(target, golden, out):
    report = compare(target, golden, out)["pairs"][0]
    plan, moving = plan_of(target, golden), moving_functions()
    ruler = report["ruler"]
    every, functions = [], []
    for at, alone in ((0, "target_only"), (1, "golden_only")):
        paired = {pair[at] for pair in (*plan["pairs"], *op_links(plan)) if computes(pair[at], moving)}
        all_of = paired | {op for op in plan[alone] if computes(op, moving)}
        every.append((len(paired), len(all_of)))
        functions.append(tuple(sum(not op.startswith(("Cell.", "Module.")) for op in ops) for ops in (paired, all_of)))
    (paired, computing), most = (min(sides, key=lambda side: side[1]) for sides in (functions, every))
    first = report["first_difference"] or {}
    equal = ruler["bit_equal"] + ruler["round_off"] + ruler["rewritten"]
    judged = report["matched_ops"] - (ruler["none"] - report["target_only_ops"])
    return Clean(
        judged, equal, computing, paired, most[0] / most[1], ruler["bug"], ruler["suspicious"], first.get("op", "")
    )


def op_links(plan):
    """Pairs of ops of which only items belong together."""
    ops = [re.compile(r"^(.*\.(?:forward|backward)(?:\.\d+)?)\.(?:input|output|parameters)\b")] * 2
    for pair in plan.get("items", []):
        found = [pattern.match(item or "") for pattern, item in zip(ops, pair)]
        if all(found):
            yield tuple(match.group(1) for match in found)


# ---- planted bugs -----------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    right: bool
    op: str
    kind: str
    verdict: str
    detail: str


def lines_of(side, op):
    """Lines of a network that an op is called from, the innermost one only."""
    stacks = side / "rank" / "stack.json"
    if not stacks.exists():
        return set()
    for names, frames in json.loads(stacks.read_text()).values():
        if op in names:
            inner = next((f for f in frames if "/sources/" in f or "_networks/" in f), "")
            return set(map(int, re.findall(r", line (\d+), in ", inner)))
    return set()


def bug_result(root, bug, out):
    target, golden = root / "bugs" / bug.name, dump_of(root, OTHER[bug.side], bug.network)
    said = answer_of(compare(target, golden, out))
    places = [Place.parse(text) for text in bug.where]
    right = set()
    for side in (target, golden):
        names, parents = read_dump(side / "rank")
        right |= {op for op in names if any(holds(place, op, parents) for place in places)}
    marked = said.kind != "missing_op" and line_of(bug) in lines_of(target, said.op)
    return Answer(bool({said.op, said.inside} & right) or marked, said.op, said.kind, said.verdict, said.detail)


def holds(place, op, parents):
    """As Place.holds; a function that no module calls has "" for its module."""
    return place.holds(op, {**parents, op: parents.get(op) or ""})

"""The cases of the zoo, and how one is run and judged."""

import ast
from pathlib import Path
from typing import NamedTuple

from launch import run_mindspore, run_python
from zoo_judge import WAYS, judge_case

HERE = Path(__file__).resolve().parent


class Case(NamedTuple):
    """One file of zoo/."""

    name: str
    text: str
    level: str = "mix"
    steps: int = 2
    ranks: int = 1
    deep: bool = False


def read_case(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    given = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Constant):
            given[node.targets[0].id] = node.value.value
    options = {k.lower(): given[k] for k in ("LEVEL", "STEPS", "RANKS", "DEEP") if k in given}
    return Case(path.stem, (ast.get_docstring(tree) or "").strip(), **options)


def cases():
    return [read_case(path) for path in sorted((HERE / "zoo").glob("*.py"))]


def run_case(case, out):
    """Runs all ways of a case below `out` and returns the verdict."""
    out.mkdir(parents=True, exist_ok=True)
    run_python([HERE / "case_run.py", case.name, out, *WAYS], cwd=out, timeout=600)
    return judge_case(case.name, out, case.level, case.steps, case.ranks)


def mindspore_cases():
    return [read_case(path) for path in sorted((HERE / "zoo_mindspore").glob("*.py"))]


def run_mindspore_case(case, out, python):
    """As run_case(), for the Cells of a network."""
    out.mkdir(parents=True, exist_ok=True)
    done = run_mindspore([python, HERE / "mindspore_run.py", case.name, out, *WAYS], cwd=out, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return judge_case(case.name, out, "L0" if case.level == "mix" else case.level, case.steps, 1)

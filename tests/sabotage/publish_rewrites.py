"""Compares the pairs of rewrites.py, rounding.py and on_top.py; with --write, docs/{en,zh}/compare/rewrites.md.

.venv/bin/python tests/sabotage/publish_rewrites.py --write
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from launch import REPO, run_python
from make_dumps import OTHER_WAYS, other_ways
from publish import kind, mark, named
from score import results_of

HERE = Path(__file__).resolve().parent


def dumps_in(root):
    if root.exists():
        return
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    run_python([HERE / "make_dumps.py", root, "--sets", *OTHER_WAYS], env=environment, timeout=3600)


def said(case, answer):
    return kind(answer) + named(answer, case.world) if answer.op else "no difference"


def holds(case):
    return f"{case.level}, {case.summary if case.summary != 'statistics' else case.task}"


def measure(root):
    dumps_in(root)
    found = {}
    for name, cases in other_ways().items():
        results = results_of(root / name)
        answers = {case.name: results[case.name].answer for case in cases}
        found[f"{name}_all"] = len(cases)
        if name == "on_top":
            found["on_top_right"] = sum(results[case.name].right for case in cases)
            found[name] = "\n".join(
                f"| {case.name} | {case.about} | {holds(case)} | `{case.where[0]}` | {said(case, answers[case.name])} "
                f"| {mark(results[case.name].right)} |"
                for case in cases
            )
            continue
        found[f"{name}_bugs"] = sum(answer.verdict == "bug" for answer in answers.values())
        found[f"{name}_doubts"] = sum(answer.verdict == "suspicious" for answer in answers.values())
        found[f"{name}_claims"] = sum(bool(results[case.name].claims) for case in cases)
        found[name] = "\n".join(
            f"| {case.name} | {case.about} | {holds(case)} | {said(case, answers[case.name])} |" for case in cases
        )
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the two pages")
    parser.add_argument("--keep", type=Path, help="leave the dumps here; those of an earlier run are taken as they are")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(args.keep or Path(scratch) / "dumps")
    for language in ("en", "zh"):
        text = (HERE / f"rewrites_page.{language}.txt").read_text(encoding="utf-8").format(**found)
        if language == "en":
            print(text)
        if args.write:
            (REPO / "docs" / language / "compare" / "rewrites.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

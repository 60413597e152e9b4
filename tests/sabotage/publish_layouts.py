"""Compares the pairs of layout_pairs.py and layout_bugs.py; with --write, docs/{en,zh}/compare/layouts.md.

.venv/bin/python tests/sabotage/publish_layouts.py --write
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from graph_cases import find_command
from launch import REPO, run_python
from layout_pairs import WAYS
from layouts import MAKERS
from make_dumps import LAYOUT_SETS, layout_sets
from publish import kind, mark, named
from publish_rewrites import holds
from score import results_of
from test_layouts import bits

HERE = Path(__file__).resolve().parent


def dumps_in(root):
    if not root.exists():
        run_python([HERE / "make_dumps.py", root, "--sets", *LAYOUT_SETS], timeout=3600)


def said(case, answer):
    return kind(answer) + named(answer, case.world) if answer.op else "no difference"


def is_silent(side):
    command = [find_command(), "overflow_check", "-i", side / "step0", "-o", side, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return not json.loads(done.stdout)["first"]


def same_rows(root, results):
    """A row for each layout, a column for each way to record it."""
    rows = []
    for layout in MAKERS:
        cells = []
        for way in WAYS:
            name = f"same_{layout}_{way}"
            answer = results[name].answer
            cells.append(answer.verdict or answer.kind if answer.op or answer.kind != "none" else "=")
        sides = [root / "layouts" / f"same_{layout}_{way}" / side for way in WAYS for side in ("target", "golden")]
        quiet = sum(map(is_silent, sides))
        pair = root / "uncaptured" / f"bits_{layout}"
        equal = mark(bits(pair / "target") == bits(pair / "golden"))
        rows.append(f"| {layout} | {' | '.join(cells)} | {quiet} of {len(sides)} | {equal} |")
    return "\n".join(rows)


def bug_row(case, result):
    place = f"`{case.where[0]}`" + (f", rank {case.ranks[0]}" if case.ranks and len(case.ranks) == 1 else "")
    answer = said(case, result.answer)
    return f"| {case.name} | {case.about} | {holds(case)} | {place} | {answer} | {mark(result.right)} |"


def measure(root):
    dumps_in(root)
    same, found = results_of(root / "layouts"), results_of(root / "layout_bugs")
    cases = layout_sets()["layout_bugs"]
    verdicts = [result.answer.verdict for result in same.values()]
    return {
        "pairs": len(same),
        "called": verdicts.count("bug"),
        "doubted": verdicts.count("suspicious"),
        "same": same_rows(root, same),
        "ways": " | ".join(WAYS),
        "bugs_all": len(cases),
        "bugs_right": sum(found[case.name].right for case in cases),
        "bugs": "\n".join(bug_row(case, found[case.name]) for case in cases),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the two pages")
    parser.add_argument("--keep", type=Path, help="leave the dumps here; those of an earlier run are taken as they are")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(args.keep or Path(scratch) / "dumps")
    for language in ("en", "zh"):
        text = (HERE / f"layouts_page.{language}.txt").read_text(encoding="utf-8").format(**found)
        if language == "en":
            print(text)
        if args.write:
            (REPO / "docs" / language / "compare" / "layouts.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

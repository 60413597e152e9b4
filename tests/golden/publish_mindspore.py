"""Prints how the tables of the MindSpore golden set agree with mindstudio-probe, cell by cell.

.venv/bin/python tests/golden/publish_mindspore.py
"""

import collections
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "python")]

from mindspore_cases import CROSS_8, CROSS_26, OLDER  # noqa: E402
from mindspore_cells import CLASSES  # noqa: E402
from mindspore_set import run_case  # noqa: E402
from test_mindspore_answers import MAPPED, REVERSED, change_cells  # noqa: E402
from test_mindspore_tables import judge, rows_of  # noqa: E402


def main():
    print("| tables | cases | equal |", " | ".join(CLASSES), "| without a reason |")
    print("|---" * (len(CLASSES) + 4) + "|")
    groups = {"26.2.0 across frameworks": CROSS_26, "8.1.1 across frameworks": CROSS_8, "8.1.1": OLDER}
    for title, cases in groups.items():
        cells, faults = collections.Counter(), 0
        for case in cases:
            with tempfile.TemporaryDirectory() as out:
                run_case(case, out)
                found, wrong = judge(case, out)
            cells += found
            faults += len(wrong)
        counts = " | ".join(str(cells[name]) for name in CLASSES)
        print(f"| {title} | {len(cases)} | {cells['exact']} | {counts} | {faults} |")
    change_all()


def change_all():
    """In each table that is computed again, a cell of each title is changed: how many of them the rules notice."""
    noticed, changed = collections.Counter(), collections.Counter()
    for case in CROSS_26 + REVERSED + MAPPED:
        with tempfile.TemporaryDirectory() as out:
            run_case(case, out)
            path = next(p for p in Path(out).iterdir() if p.suffix in (".csv", ".xlsx"))
            for title, seen in change_cells(case, rows_of(path)):
                changed[title] += 1
                noticed[title] += seen
    print("\n| title | cells changed | noticed |\n|---|---|---|")
    for title, count in changed.items():
        print(f"| {title} | {count} | {noticed[title]} |")


if __name__ == "__main__":
    main()

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
from test_mindspore_tables import judge  # noqa: E402


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


if __name__ == "__main__":
    main()

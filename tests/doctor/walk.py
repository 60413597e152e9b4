"""Makes the two runs of the walk in docs/en/checks/doctor.md: DIR/A, the reference, and DIR/B, which ends higher.

.venv/bin/python tests/doctor/walk.py pytorch|mindspore DIR
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cases import CASES
from doctor_runs import Runner, prepare

NAMES = {"pytorch": "eps_inside", "mindspore": "ms_no_bias_correction"}


def main(framework, directory):
    case = next(c for c in CASES if c.name == NAMES[framework])
    where = Path(directory)
    prepare(where / "A", case, "pytorch", edited=False)
    prepare(where / "B", case, case.framework, edited=True)
    runner = Runner(where, os.environ.get("TRAIN_PYTHON_MS"))
    for side in "AB":
        runner.train(where / side)


if __name__ == "__main__":
    main(*sys.argv[1:])

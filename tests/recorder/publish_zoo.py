"""`python -m tests.recorder.publish_zoo [-v] [--mindspore] [--level=L0] [CASE ...]`: runs cases of the zoo and prints what was found.

-v: all of it, not only the first line of each case; --level: all cases at this level; --out=DIRECTORY: keeps the files there.
"""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

from zoo_cases import cases, mindspore_cases, run_case, run_mindspore_case  # noqa: E402 - beside this file


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    verbose = "-v" in sys.argv
    mindspore = "--mindspore" in sys.argv
    python = HERE.parents[1] / ".venv-ms" / "bin" / "python"
    chosen = [c for c in (mindspore_cases() if mindspore else cases()) if not names or c.name in names]
    kept = next((a[6:] for a in sys.argv if a.startswith("--out=")), None)
    level = next((a[8:] for a in sys.argv if a.startswith("--level=")), None)
    if level:
        os.environ["ZOO_LEVEL"] = level
        chosen = [case._replace(level=level) for case in chosen]
    totals = {}
    print(f"{'case':34} {'verdict':17} entries items wrong missing said rounded unknown extra")
    for case in chosen:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(kept or directory) / case.name
            v = run_mindspore_case(case, out, python) if mindspore else run_case(case, out)
        totals[v.status] = totals.get(v.status, 0) + 1
        print(
            f"{case.name:34} {v.status:17} {v.entries:7} {v.items:5} {len(v.wrong):5} {len(v.missing):7} {v.said:4}"
            f" {v.rounded:7} {v.unknown:7} {v.extra:5}",
            flush=True,
        )
        for line in v.evidence() if verbose else v.evidence()[:1]:
            print(f"      {line}")
        for line in v.notes if verbose else []:
            print(f"      ({line})")
    print(", ".join(f"{n} {status}" for status, n in totals.items()))


if __name__ == "__main__":
    main()

"""Runs under the earlier tool's interpreter: what its overflow_check names for each step of a dump.

`overflow_old_answers.py DUMP OUT.json SEED...` writes {seed: {step: {rank: [op]}}}; the answer of the earlier tool hangs
on the seed of Python's string hashes, so each seed is a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def answer(step):
    from msprobe.overflow_check.analyzer import OverFlowCheck

    with tempfile.TemporaryDirectory() as out:
        try:
            OverFlowCheck(str(step), out).analyze()
        except Exception as error:  # noqa: BLE001  whatever it ends with is its answer
            return f"{type(error).__name__}"
        files = list(Path(out).iterdir())
        if not files:
            return {}
        nodes = json.loads(files[0].read_text())
    return {rank: [node["op_name"] for node in ops] for rank, ops in nodes.items()}


def main():
    dump, out, *seeds = sys.argv[1:]
    if out == "-":
        steps = sorted(Path(dump).glob("step*"), key=lambda p: int(p.name[4:]))
        print("ANSWERS" + json.dumps({step.name: answer(step) for step in steps}))
        return
    result = {}
    for seed in seeds:
        done = subprocess.run(
            [sys.executable, __file__, dump, "-"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS")]
        result[seed] = json.loads(line[len("ANSWERS") :])
    Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()

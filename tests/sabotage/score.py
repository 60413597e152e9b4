"""Runs the compare command on the pairs and holds its first difference against the truth."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))


class Answer(NamedTuple):
    op: str  # "" when the tool names none
    rank: Optional[int]
    kind: str
    text: str = ""


def command():
    binary = os.environ.get("MSPROBE_BIN")
    return [binary] if binary else [sys.executable, "-m", "msprobe"]


def compare(root, out):
    """The report of one case as --json gives it."""
    arguments = ["compare", "-tp", root / "target" / "step0", "-gp", root / "golden" / "step0", "-o", out, "--json"]
    done = subprocess.run([*command(), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), f"{root}: exit code {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
    return json.loads(done.stdout)


def rank_of(label):
    digits = "".join(c for c in label if c.isdigit())
    return int(digits) if digits else 0


def answer_of(report):
    """What the command says comes first, over all ranks."""
    found = report.get("first_divergence")
    if found is not None:
        creator = found.get("creator") or {"op": "", "rank": None, "kind": "none", "detail": ""}
        return Answer(creator["op"], creator["rank"] or 0, creator["kind"], creator["detail"])
    for pair in report["pairs"]:
        for key in ("earlier_input_difference", "first_difference"):
            found = pair[key]
            if found:
                return Answer(found["op"], rank_of(pair["label"]), found["kind"], found["detail"])
    return Answer("", None, "none")


def is_right(truth, answer):
    right = truth["accept"].get(str(answer.rank))
    return bool(right) and answer.op in right["golden" if answer.kind == "missing_op" else "target"]


def truth_of(root):
    return json.loads((root / "truth.json").read_text())


def main():
    root = Path(sys.argv[1])
    wanted = sys.argv[2:]
    good = total = 0
    for path in sorted(root.glob("*/truth.json")):
        if wanted and path.parent.name not in wanted:
            continue
        truth = truth_of(path.parent)
        try:
            answer = answer_of(compare(path.parent, path.parent / "compare"))
        except AssertionError as error:
            answer = Answer("", None, str(error).strip().splitlines()[-1])
        right = is_right(truth, answer)
        good, total = good + right, total + 1
        print(
            f"{'right' if right else 'WRONG':6} {truth['case']:26} {answer.rank} {answer.op}  [{answer.kind}] {answer.text}"
        )
        if not right:
            print("       expected:", *(f"{r}: {a['target'][:4]}" for r, a in truth["accept"].items()))
    print(f"{good} of {total}")


if __name__ == "__main__":
    main()

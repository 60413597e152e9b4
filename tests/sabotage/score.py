"""Runs the compare command on pairs and holds what it says against the truth: `score.py OUT/SET [NAME ...]`."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command


class Answer(NamedTuple):
    op: str  # "" when nothing is named
    rank: Optional[int]
    kind: str
    detail: str = ""
    verdict: str = ""
    inside: str = ""  # the module whose own code, between recorded ops, makes the difference that enters `op`


class Result(NamedTuple):
    name: str
    answer: Answer
    bugs: int  # ops which the ruler calls a bug
    truth: Optional[dict]  # None for clean pairs
    claims: list  # how values are wrong, by their texts

    @property
    def right(self):
        return is_right(self.truth, self.answer)


def compare(root):
    """The report of one pair as --json gives it; the text of the error instead, if it could not be compared."""
    steps = "" if (root / "target" / "step1").exists() else "step0"
    arguments = ["-tp", root / "target" / steps, "-gp", root / "golden" / steps, "-o", root / "compare", "--json"]
    done = subprocess.run(
        [find_command(), "compare", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return (
        json.loads(done.stdout) if done.returncode in (0, 1) else f"exit code {done.returncode}: {done.stderr[-500:]}"
    )


def answer_of(report):
    """What the command says comes first, over all ranks."""
    if isinstance(report, str):
        return Answer("", None, "failed", report)
    found = report.get("first_divergence")
    if found is not None:
        creator = found.get("creator")
        if not creator:
            return Answer("", None, "none")
        said = [creator.get(key, "") for key in ("kind", "detail", "verdict", "inside")]
        return Answer(creator["op"], creator["rank"] or 0, *said)
    for pair in report["pairs"]:
        for key in ("earlier_input_difference", "first_difference"):
            found = pair[key]
            if found:
                rank = int(re.sub(r"\D", "", pair["label"]) or 0)
                return Answer(found["op"], rank, found["kind"], found["detail"], found.get("verdict", ""))
    return Answer("", None, "none")


def is_right(truth, answer):
    right = truth["accept"].get(str(answer.rank))
    names = {answer.op, answer.inside} - {""}
    return bool(right) and bool(names & set(right["golden" if answer.kind == "missing_op" else "target"]))


def claims_of(report):
    origins = [] if isinstance(report, str) else report["verdict"]["origins"]
    told = [origin["anatomy"] for origin in origins if origin["anatomy"]]
    return [anatomy["text"]["en"] for anatomy in told if anatomy["kind"] != "unexplained"]


def result_of(root):
    report = compare(root)
    pairs = [] if isinstance(report, str) else report["pairs"]
    bugs = sum(pair.get("ruler", {}).get("bug", 0) for pair in pairs)
    truth = root / "truth.json"
    known = json.loads(truth.read_text()) if truth.exists() else None
    return Result(root.name, answer_of(report), bugs, known, claims_of(report))


def results_of(directory, names=()):
    """{name: Result} of a set."""
    roots = [path for path in sorted(Path(directory).iterdir()) if not names or path.name in names]
    with ThreadPoolExecutor(2) as pool:
        return {result.name: result for result in pool.map(result_of, roots)}


def main():
    results = results_of(sys.argv[1], sys.argv[2:])
    good = 0
    for result in results.values():
        answer = result.answer
        said = f"rank {answer.rank} {answer.op} [{answer.kind}, {answer.verdict}] {answer.detail}"
        if result.truth is None:
            good += answer.verdict != "bug"
            print(f"{result.name:26} {said}; ops called a bug: {result.bugs}")
            continue
        good += result.right
        print(f"{'right' if result.right else 'WRONG':6} {result.name:26} {said}")
        if not result.right:
            print("       expected:", *(f"{r}: {a['target'][:4]}" for r, a in result.truth["accept"].items()))
    print(f"{good} of {len(results)}")


if __name__ == "__main__":
    main()

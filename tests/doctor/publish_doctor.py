"""Trains and diagnoses all planted cases and clean pairs; with --write, the tables of docs/{en,zh}/checks/doctor.md.

.venv/bin/python tests/doctor/publish_doctor.py --write
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from cases import CASES, CLEAN, MINDSPORE, PYTORCH
from doctor_runs import REPO, Result, Runner
from published import replaced

YES = {"en": ("yes", "**no**"), "zh": ("是", "**否**")}
NO = {"en": "no", "zh": "否"}


def row(case, result, language):
    yes, no = YES[language]
    if case.kind == "clean":
        called = yes if result.bug else NO[language]
        return f"| {case.name} | {case.about} | {result.outcome} | {result.stage} | {called} | {result.runs} |"
    right = [yes if found else no for found in (result.right_stage, result.right_cause)]
    return (
        f"| {case.name} | {case.kind} | {case.about} | {result.stage} | `{result.cause}` | {right[0]} | {right[1]} | "
        f"{result.runs} | {result.seconds:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the tables of the two pages")
    parser.add_argument("--mindspore", default=REPO / ".venv-ms" / "bin" / "python", help="python with MindSpore")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--results", default="", help="a file for the results as JSON, which --write can begin with")
    parser.add_argument("--workers", type=int, default=2, help="cases at a time")
    parser.add_argument("--keep", default="", help="directory of the runs, instead of one that goes")
    args = parser.parse_args()
    known = json.loads(Path(args.results).read_text()) if args.results and Path(args.results).exists() else {}
    wanted = [c for c in CASES if c.name not in known and (not args.only or c.name in args.only)]
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(args.keep or scratch, args.mindspore)

        def diagnosed(case):
            try:
                result = runner.diagnose(case)
            except AssertionError as error:
                print(f"{case.name}: {error}", flush=True)
                return
            known[case.name] = result._asdict()
            print(row(case, result, "en"), flush=True)
            if args.results:
                Path(args.results).write_text(json.dumps(known, indent=1))

        with ThreadPoolExecutor(args.workers) as pool:
            list(pool.map(diagnosed, wanted))
    results = {name: Result(**fields) for name, fields in known.items()}
    planted = [results[c.name] for c in (*PYTORCH, *MINDSPORE) if c.name in results]
    clean = [results[c.name] for c in CLEAN if c.name in results]
    counts = {
        "planted": len(planted),
        "stage": sum(r.right_stage for r in planted),
        "cause": sum(r.right_cause for r in planted),
        "runs": max((r.runs for r in planted), default=0),
        "seconds": max((r.seconds for r in planted), default=0),
        "clean": len(clean),
        "bugs": sum(r.bug for r in clean),
    }
    print(counts)
    if not args.write:
        return
    for language in YES:
        page = REPO / "docs" / language / "checks" / "doctor.md"
        text = page.read_text(encoding="utf-8")
        for mark, cases in (("pytorch", PYTORCH), ("mindspore", MINDSPORE), ("clean", CLEAN)):
            lines = [row(c, results[c.name], language) for c in cases if c.name in results]
            head = text.partition(f"<!-- {mark} -->\n")[2].split("\n")[:2]
            text = replaced(text, mark, "\n".join([*head, *lines]))
        summary = (
            "| {planted} | {stage} | {cause} | {runs} | {seconds:.0f} s | {bugs} of {clean} |"
            if language == "en"
            else "| {planted} | {stage} | {cause} | {runs} | {seconds:.0f} 秒 | {clean} 对中 {bugs} |"
        ).format(**counts)
        head = text.partition("<!-- summary -->\n")[2].split("\n")[:2]
        text = replaced(text, "summary", "\n".join([*head, summary]))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Runs every case of certify --resume and writes the tables of docs/en/capture/resume.md and docs/zh/capture/resume.md.

`python tests/resume/publish_resume.py [--only TEXT]`: with --only nothing is written. Takes some twenty minutes of two cores.
"""

import argparse
import functools
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import CLEAN, PLANTED, certify, faults

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- cases: publish_resume.py -->", "<!-- end of cases -->"


def row(case, certificate, wrong):
    """Returns the cells of a case: what was lost, what is named, how the losses go on, the op that noticed."""
    ranks = certificate.get("ranks", [])
    kind = [state["example"] for rank in ranks for state in rank["lost"] if state["kind"] in case.lost]
    others = sorted({state["kind"] for rank in ranks for state in rank["lost"]} - set(case.lost))
    after = [rank["difference_after_resume"] for rank in ranks if rank["difference_after_resume"]]
    ops = [rank["first_op_that_noticed"] for rank in ranks if rank["first_op_that_noticed"]["op"]]
    return {
        "case": case.name,
        "right": not wrong,
        "outcome": certificate.get("outcome", "none"),
        "named": kind[0] if kind else "",
        "others": others,
        "after": f"{after[0]['what']}, step {after[0]['step']}" if after else "=",
        "op": f"{ops[0]['op'].split(' ')[0].rstrip(':')}, step {ops[0]['step']}" if ops else "-",
        "wrong": wrong,
    }


def judged(case, command):
    """Runs a case; returns its cells."""
    with tempfile.TemporaryDirectory() as directory:
        done, certificate = certify(case, Path(directory) / "out", command)
        return row(case, certificate, faults(case, done, certificate))


def table(rows):
    """Returns the rows as Markdown."""
    lines = ["| case | outcome | named | also | first result that differs | first op |", "|---|---|---|---|---|---|"]
    for r in rows:
        named = f"`{r['named']}`" if r["named"] else ""
        outcome = r["outcome"] if r["right"] else f"**{r['outcome']}, wrong**"
        lines.append(f"| `{r['case']}` | {outcome} | {named} | {', '.join(r['others'])} | {r['after']} | `{r['op']}` |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "msprobe"))
    parser.add_argument("--keep", default="", help="file for the rows as JSON; rows that it holds are not run again")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    given = parser.parse_args()
    keep = Path(given.keep) if given.keep else None
    known = {r["case"]: r for r in json.loads(keep.read_text())} if keep and keep.exists() else {}
    asked = [c for c in (*PLANTED, *CLEAN) if given.only in c.name and not known.get(c.name, {}).get("right")]
    with ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(functools.partial(judged, command=given.command), asked):
            known[found["case"]] = found
            print(json.dumps(found), flush=True)
            if keep:
                keep.write_text(json.dumps(list(known.values()), indent=1))
    if given.only:
        return
    planted, clean = [known[c.name] for c in PLANTED], [known[c.name] for c in CLEAN]
    text = f"{sum(r['right'] for r in planted)} / {len(planted)}, {sum(not r['right'] for r in clean)} / {len(clean)}"
    for language in ("en", "zh"):
        page = ROOT / "docs" / language / "capture" / "resume.md"
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        inside = f"\n\n{table(planted)}\n\n{table(clean)}\n\n"
        page.write_text(before + BEGIN + inside + END + after, encoding="utf-8")
    print(text)


main()

"""Runs every case of certify --twice and writes the table of docs/en/capture/resume.md and docs/zh/capture/resume.md.

`python tests/resume/publish_twice.py [--only TEXT] [--keep FILE]`: with --only nothing is written; right rows of the kept file
are not run again. Takes some five minutes of two cores.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from twice_cases import CLEAN, PLANTED, certify_twice, faults_of

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- twice: publish_twice.py -->", "<!-- end of twice -->"


def row(case, command):
    """Runs a case; returns its cells."""
    with tempfile.TemporaryDirectory() as directory:
        done, certificate = certify_twice(case, Path(directory) / "out", command)
    wrong = faults_of(case, done, certificate)
    ranks = [r for r in certificate.get("ranks", []) if r["op"]]
    chosen = next((r for r in ranks if r["rank"] == case.rank), None)
    result = chosen["first_result"] if chosen else None
    return {
        "about": case.about,
        "processes": case.processes,
        "repeats": certificate.get("repeats"),
        "op": chosen["op"].split(" (")[0].split(": ")[0] if chosen else "",
        "where": f"{chosen['rank']}, step {chosen['step']}" if chosen else "",
        "result": f"{result['what']}, step {result['step']}" if result else "=",
        "wrong": wrong,
    }


def table(rows):
    """Returns the rows as Markdown."""
    lines = [
        "| training | processes | repeats itself | first op | where | first result that differs | right |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        op = f"`{r['op']}`" if r["op"] else ""
        repeats, right = "yes" if r["repeats"] else "no", "no" if r["wrong"] else "yes"
        lines.append(f"| {r['about']} | {r['processes']} | {repeats} | {op} | {r['where']} | {r['result']} | {right} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "msprobe"))
    parser.add_argument("--keep", default="", help="file for the rows as JSON")
    given = parser.parse_args()
    keep = Path(given.keep) if given.keep else None
    known = {r["about"]: r for r in json.loads(keep.read_text())} if keep and keep.exists() else {}
    for case in (*PLANTED, *CLEAN):
        if given.only not in case.about or (case.about in known and not known[case.about]["wrong"]):
            continue
        known[case.about] = row(case, given.command)
        print(json.dumps(known[case.about]), flush=True)
        if keep:
            keep.write_text(json.dumps(list(known.values()), indent=1))
    if given.only:
        return
    planted, clean = [known[c.about] for c in PLANTED], [known[c.about] for c in CLEAN]
    for language in ("en", "zh"):
        page = ROOT / "docs" / language / "capture" / "resume.md"
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        inside = f"\n\n{table(planted)}\n\n{table(clean)}\n\n"
        page.write_text(before + BEGIN + inside + END + rest.split(END)[1], encoding="utf-8")
    print(
        f"{sum(not r['wrong'] for r in planted)} / {len(planted)} named, {sum(bool(r['wrong']) for r in clean)} / {len(clean)} wrong"
    )


if __name__ == "__main__":
    main()

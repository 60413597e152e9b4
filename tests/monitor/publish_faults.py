"""Trains with planted faults and without, and judges; with --write, the tables of docs/{en,zh}/monitor/judge.md.

.venv/bin/python tests/monitor/publish_faults.py DIRECTORY --splits test other --write

Runs are kept in DIRECTORY, so that rules can change without training again; --no-runs judges those that are there. The
judgement is that of `msprobe monitor judge`; the rule of mindstudio-probe (AnomalyTurbulence) stands beside it.
"""

import argparse
import collections
import glob
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cases
import numpy
import runs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from published import replaced

WARM_UP, LATEST = 200, 30
OLD_THRESHOLDS = (0.5, 50)
RATES = (0.02, 2)  # of false alarms, which the healthy runs are judged with
REPO = Path(__file__).resolve().parents[2]
DETECTORS = ("spike", "level", "trend", "variance", "zeros", "stuck", "not_finite", "missing", "a relation")
MARK = "measured by tests/monitor/publish_faults.py"


def read_loss(directory):
    """Losses by step."""
    with open(os.path.join(directory, "loss.csv"), encoding="utf-8") as file:
        return [float(line.split(",")[1]) for line in file.readlines()[1:]]


def loss_shows(faulty, healthy, at):
    """The first step at which the loss is another than that of the healthy twin, by more than its noise; or None.

    The noise is the median of how much the loss of the twin changes from step to step. A single loss shows it from five
    times that on, five in a row when their median is half of it.
    """
    around = healthy[max(at - 100, 0) : at + 100]
    noise = 1.4826 * statistics.median(abs(a - b) for a, b in zip(around, around[1:])) / 2**0.5
    differences = [a - b for a, b in zip(faulty, healthy)]
    for step in range(at, len(differences)):
        if not abs(differences[step]) <= 5 * noise:
            return step
        if step >= at + 4 and abs(statistics.median(differences[step - 4 : step + 1])) > 2.5 * noise:
            return step
    return None


def judge(directory, false_alarms=RATES[0]):
    """The answer of the command."""
    command = os.environ.get("JUDGE", "").split() or [os.path.join(os.path.dirname(sys.executable), "msprobe")]
    given = ["monitor", "judge", directory, "--loss", os.path.join(directory, "loss.csv"), "--json"]
    given += ["--false-alarms", str(false_alarms)]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def old_rule(directory):
    """For each threshold, steps after the warm-up at which AnomalyTurbulence alarms: |value| above (1 + threshold) times the running mean."""
    from msprobe import _core

    steps = {threshold: set() for threshold in OLD_THRESHOLDS}
    for path in glob.glob(os.path.join(directory, "*", "monitor.series")):
        columns = []
        for series in _core.read_series(path)["series"]:
            for column, points in series["columns"].items():
                if column in ("norm", "mean"):
                    columns.append(dict(points))
        last = max(max(c) for c in columns if c)
        table = numpy.array([[c.get(step, numpy.nan) for c in columns] for step in range(last + 1)])
        table = numpy.abs(table)
        mean = table[0]
        for step, row in enumerate(table):
            for threshold in OLD_THRESHOLDS if step >= WARM_UP else ():
                if (row > mean * (1 + threshold)).any():
                    steps[threshold].add(step)
            mean = numpy.where(numpy.isnan(mean), row, mean)
            mean = numpy.where(numpy.isfinite(row), 0.99 * mean + 0.01 * row, mean)
    return {str(threshold): sorted(found) for threshold, found in steps.items()}


def is_layer(event, truth):
    """Whether the answer names the layer, or a part of it."""
    return bool(event["layers"]) and all(part == truth or part.startswith(truth + ".") for part in event["layers"])


def look_at(case, directory):
    """One row of the table."""
    place = os.path.join(directory, case["name"])
    fault, answer = case["fault"], judge(place)
    at = fault["at"]
    shows = loss_shows(read_loss(place), read_loss(place + "_twin"), at)
    early = [e for e in answer["events"] if e["told"] < at]
    later = [e for e in answer["events"] if e["told"] >= at]
    event = later[0] if later else None
    deadline = shows if shows is not None else at + LATEST
    row = {
        "name": case["name"],
        "note": fault["note"],
        "at": at,
        "false": len(early),
        "told": event["told"] if event else None,
        "loss": shows,
        "in_time": event is not None and event["told"] <= deadline,
        "layer": None if not fault["layer"] or event is None else is_layer(event, fault["layer"]),
        "text": event["text"] if event else "",
        "family": case["shape"]["family"],
        "ranks": case["ranks"],
        "rank": None,
        "undecided": event is not None and event["rank_undecided"],
    }
    if fault["rank"] >= 0 and event is not None:
        if case["ranks"] >= 3:
            row["rank"] = event["rank"] == fault["rank"]
        else:
            # Who left the relation of parameters and optimizer is known; of two that only differ it cannot be.
            row["rank"] = event["rank"] == fault["rank"] or (event["rank"] is None and event["rank_undecided"])
    elif fault["layer"] and event is None:
        row["layer"] = False
    return row


def look_at_healthy(case, directory):
    """Events at each rate of false alarms, and what it cost."""
    place = os.path.join(directory, case["name"])
    answers = {rate: judge(place, rate) for rate in RATES}
    first = answers[RATES[0]]
    return {
        "name": case["name"],
        "series": first["series"],
        "steps": first["steps"],
        "ranks": case["ranks"],
        "detectors": {str(r): [e["detector"] for e in a["events"]] for r, a in answers.items()},
        "texts": [e["text"] for e in first["events"]],
    }


def look_at_old(faulty, healthy, directory):
    """What AnomalyTurbulence says of the same runs: for each threshold (faults with an alarm afterwards, of those without one before, healthy)."""
    found = {case["name"]: old_rule(os.path.join(directory, case["name"])) for case in [*faulty, *healthy]}
    out = {}
    for threshold in map(str, OLD_THRESHOLDS):
        after = clean = 0
        for case in faulty:
            steps = found[case["name"]][threshold]
            told = any(s >= case["fault"]["at"] for s in steps)
            after += told
            clean += told and not any(s < case["fault"]["at"] for s in steps)
        out[threshold] = [after, clean, sum(bool(found[c["name"]][threshold]) for c in healthy)]
    return out


def cost(directory):
    """Milliseconds of the processor for each step of the longest run of one rank that is judged live, and its series."""
    from msprobe import _core

    path = max(glob.glob(os.path.join(directory, "healthy*", "*", "monitor.series")), key=os.path.getsize)
    live = _core.SeriesJudge(path, 0, RATES[0])
    before = time.process_time()
    live.advance()
    spent = time.process_time() - before
    data = _core.read_series(path)["series"]
    steps = max(len(points) for series in data for points in series["columns"].values())
    return {"ms_per_step": 1000 * spent / steps, "series": sum(len(s["columns"]) for s in data), "steps": steps}


def look_at_split(split, options):
    """All that is known about the runs of a split."""
    where = os.path.join(options.directory, split)
    faulty, healthy = cases.fault_cases(split), cases.healthy_cases(split, options.healthy)
    if not options.no_runs:
        runs.make_all([*faulty, *[cases.twin_of(c) for c in faulty], *healthy], where, options.jobs)

    def made(case):
        return os.path.exists(os.path.join(where, case["name"], "loss.csv"))

    faulty = [c for c in faulty if made(c) and made(cases.twin_of(c))]
    healthy = [c for c in healthy if made(c)]
    return {
        "rows": [look_at(case, where) for case in faulty],
        "healthy": [look_at_healthy(case, where) for case in healthy],
        "old": look_at_old(faulty, healthy, where),
        "cost": cost(where) if healthy else None,
    }


def share(values):
    """ "27 of 30" of truth values, those that are None left out."""
    values = [v for v in values if v is not None]
    return f"{sum(values)} of {len(values)}"


def old_share(result, threshold, place):
    """One figure of look_at_old()."""
    if not result["old"]:
        return "not run"
    return f"{result['old'][threshold][place]} of {len(result['healthy'] if place == 2 else result['rows'])}"


def figures(results):
    """The table of sums: a column for each split."""
    rows = [["", *results]]

    def add(title, of):
        rows.append([title, *[of(r) for r in results.values()]])

    add("reported in time", lambda r: share([row["in_time"] for row in r["rows"]]))
    add("right layer", lambda r: share([row["layer"] for row in r["rows"]]))
    add("right rank, or said to be undecidable", lambda r: share([row["rank"] for row in r["rows"]]))
    add("alarms before the fault", lambda r: sum(row["false"] for row in r["rows"]))
    add("healthy runs of 2,000 steps", lambda r: len(r["healthy"]))
    add("healthy runs with an alarm", lambda r: sum(bool(h["texts"]) for h in r["healthy"]))
    for threshold in map(str, OLD_THRESHOLDS):
        of = f"AnomalyTurbulence at {threshold}: "
        for place, what in enumerate(
            ("faults with an alarm afterwards", "and none before", "healthy runs with an alarm")
        ):
            add(of + what, lambda r, t=threshold, p=place: old_share(r, t, p))
    return table(rows)


def table(rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def by_detector(results):
    """Events of healthy runs by detector and by the rate that was asked for, and how much was watched."""
    healthy = [h for r in results.values() for h in r["healthy"]]
    counts = {rate: collections.Counter() for rate in RATES}
    for run in healthy:
        for rate in RATES:
            known = (d if d in DETECTORS else "a relation" for d in run["detectors"][str(rate)])
            counts[rate].update(known)
    rows = [["detector", *[f"`--false-alarms {rate}`" for rate in RATES]]]
    rows += [
        [name if name == "a relation" else f"`{name}`", *[counts[rate][name] for rate in RATES]] for name in DETECTORS
    ]
    rows.append(["all", *[sum(counts[rate].values()) for rate in RATES]])
    rows.append(["that was asked for", *[f"{rate * len(healthy):.3g}" for rate in RATES]])
    watched = sum(h["series"] * (h["steps"] - WARM_UP) for h in healthy)
    rate = sum(counts[RATES[0]].values()) / max(watched, 1)
    return table(rows), watched, rate


def fault_rows(results):
    """A row for each planted fault."""
    rows = [["split", "fault", "model", "ranks", "reported at", "loss shows it at", "layer", "rank"]]
    marks = {None: "", True: "right", False: "wrong"}
    for split, result in results.items():
        for r in result["rows"]:
            told = "not reported" if r["told"] is None else f"+{r['told'] - r['at']}"
            loss = "never" if r["loss"] is None else f"+{r['loss'] - r['at']}"
            rank = "undecidable" if r["rank"] and r["undecided"] else marks[r["rank"]]
            rows.append([split, r["note"], r["family"], r["ranks"], told, loss, marks[r["layer"]], rank])
    return table(rows)


def page(results):
    """What stands between the marks of both pages."""
    detectors, watched, rate = by_detector(results)
    command = "python tests/monitor/publish_faults.py DIRECTORY --splits " + " ".join(results) + " --write"
    spent = "; ".join(
        f"{r['cost']['ms_per_step']:.2f} ms / {r['cost']['series']} columns ({split})"
        for split, r in results.items()
        if r["cost"]
    )
    return "\n\n".join(
        [
            f"`{command}`",
            figures(results),
            detectors,
            f"{watched:,} values of series after the warm-up; {rate:.1e} alarms for each. Processor time of the judgement for a step: {spent}.",
            fault_rows(results),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="of the runs, one directory in it for each split")
    parser.add_argument("--splits", nargs="+", default=["test", "other"], choices=list(cases.SHAPES))
    parser.add_argument("--healthy", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-runs", action="store_true", help="judge only the runs that are there")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", default="", help="a file of results, which are not computed again")
    options = parser.parse_args()
    results = json.loads(Path(options.results).read_text()) if os.path.exists(options.results) else {}
    for split in options.splits:
        if split not in results:
            results[split] = look_at_split(split, options)
    if options.results:
        Path(options.results).write_text(json.dumps(results, indent=1))
    for split, result in results.items():
        for row in result["rows"]:
            if not row["in_time"] or row["layer"] is False or row["rank"] is False or row["false"]:
                print(split, row["name"], row)
        for run in result["healthy"]:
            for text in run["texts"]:
                print(split, run["name"], text)
    body = page(results)
    print(body)
    if options.write:
        for language in ("en", "zh"):
            path = REPO / "docs" / language / "monitor" / "judge.md"
            path.write_text(replaced(path.read_text(encoding="utf-8"), MARK, body), encoding="utf-8")


if __name__ == "__main__":
    main()

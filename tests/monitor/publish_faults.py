"""Judges the runs of a split, which it makes first, and prints the table of docs/en/monitor/judge.md.

    python publish_faults.py SPLIT DIRECTORY [HEALTHY] [JOBS]

The judgement is that of `msprobe monitor judge`; the rule of mindstudio-probe (AnomalyTurbulence) stands beside it.
"""

import glob
import json
import os
import statistics
import subprocess
import sys

import cases
import numpy
import runs

WARM_UP, LATEST = 200, 30
OLD_THRESHOLDS = (0.5, 50)


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


def judge(directory):
    """The answer of the command."""
    command = os.environ.get("JUDGE", "").split() or [os.path.join(os.path.dirname(sys.executable), "msprobe")]
    given = ["monitor", "judge", directory, "--loss", os.path.join(directory, "loss.csv"), "--json"]
    if os.environ.get("JUDGE"):
        given = [directory, "json"]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def old_rule(directory, threshold):
    """Steps after the warm-up at which AnomalyTurbulence alarms: |value| above (1 + threshold) times the running mean."""
    from msprobe import _core

    steps = set()
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
            if step >= WARM_UP and (row > mean * (1 + threshold)).any():
                steps.add(step)
            mean = numpy.where(numpy.isnan(mean), row, mean)
            mean = numpy.where(numpy.isfinite(row), 0.99 * mean + 0.01 * row, mean)
    return sorted(steps)


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
        "rank": None,
    }
    if fault["rank"] >= 0 and event is not None:
        if case["ranks"] >= 3:
            row["rank"] = event["rank"] == fault["rank"]
        else:
            row["rank"] = event["rank"] is None and event["rank_undecided"]
    elif fault["layer"] and event is None:
        row["layer"] = False
    return row


def main():
    split, where = sys.argv[1], sys.argv[2]
    healthy = cases.healthy_cases(split, int(sys.argv[3]) if len(sys.argv) > 3 else 12)
    wanted = cases.fault_cases(split) if split != "calibration" else []
    if "--no-runs" not in sys.argv:
        runs.make_all(
            [*wanted, *[cases.twin_of(c) for c in wanted], *healthy],
            where,
            int(sys.argv[4]) if len(sys.argv) > 4 else 2,
        )
    here = [c for c in wanted if os.path.exists(os.path.join(where, c["name"] + "_twin", "loss.csv"))]
    rows = [look_at(case, where) for case in here if os.path.exists(os.path.join(where, case["name"], "loss.csv"))]
    for row in rows:
        told = "-" if row["told"] is None else f"+{row['told'] - row['at']}"
        loss = "never" if row["loss"] is None else f"+{row['loss'] - row['at']}"
        marks = {None: "", True: "right", False: "wrong"}
        print(
            f"| {row['name']} | {row['note']} | {told} | {loss} | {'yes' if row['in_time'] else 'no'} | "
            f"{marks[row['layer']]} | {marks[row['rank']]} | {row['text']} |"
        )
    layers = [r["layer"] for r in rows if r["layer"] is not None]
    ranks = [r["rank"] for r in rows if r["rank"] is not None]
    print(
        f"in time: {sum(r['in_time'] for r in rows)} of {len(rows)}; told at all {sum(r['told'] is not None for r in rows)}"
    )
    print(f"right layer: {sum(layers)} of {len(layers)}; right rank: {sum(ranks)} of {len(ranks)}")
    print(f"alarms before the fault: {sum(r['false'] for r in rows)}")
    alarms = {}
    for case in healthy:
        place = os.path.join(where, case["name"])
        if os.path.exists(os.path.join(place, "loss.csv")):
            alarms[case["name"]] = [e["text"] for e in judge(place)["events"]]
    print(f"healthy runs of {cases.STEPS} steps: {len(alarms)}, alarms {sum(map(len, alarms.values()))}")
    for name, texts in alarms.items():
        for text in texts:
            print(f"  {name}: {text}")
    if "--old" in sys.argv:
        for threshold in OLD_THRESHOLDS:
            found = [old_rule(os.path.join(where, c["name"]), threshold) for c in here]
            right = sum(
                any(s >= c["fault"]["at"] for s in f) and not any(s < c["fault"]["at"] for s in f)
                for f, c in zip(found, here)
            )
            any_after = sum(any(s >= c["fault"]["at"] for s in f) for f, c in zip(found, here))
            clean = sum(bool(old_rule(os.path.join(where, n), threshold)) for n in alarms)
            print(
                f"AnomalyTurbulence, threshold {threshold}: alarms after the fault in {any_after} of {len(here)}, "
                f"without one before it in {right}; in {clean} of {len(alarms)} healthy runs"
            )


if __name__ == "__main__":
    main()

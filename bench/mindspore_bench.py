"""Both tools on the same steps of MindSpore, one after the other; the steps are those of mindspore_steps.py."""

import json
import statistics
import subprocess
import sys

from measure import OLD_MINDSPORE, OURS_MINDSPORE, ROOT

# (network, level, mode, what a person may expect of it at most)
STEPS = tuple(
    (net, level, mode, limit)
    for net in ("conv", "transformer")
    for level, mode, limit in (
        ("mix", "forward", 1.10),
        ("mix", "training_forward", 1.10),
        ("L0", "statistics", 1.25),
        ("L1", "statistics", 1.35),
        ("mix", "statistics", 1.50),
        ("mix", "idle", 1.01),
    )
)
WORDS = {
    "forward": "forward pass alone",
    "training_forward": "`data_mode` forward",
    "statistics": "forward and backward",
    "idle": "constructed but idle",
}


# As many processes measure a mode in which two of them differ by more than the tool costs; the middle one counts.
PROCESSES = 7


def measured(command):
    """Returns what one process measured."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} mindspore_steps.py failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def middle(rows):
    """Returns the medians over the processes, column by column, and the ratio of each."""
    medians = {key: statistics.median(row[key] for row in rows) for key in ("wall", "cpu", "base_ms")}
    return {**rows[0], **medians, "each": sorted(row["wall"] for row in rows)}


def bench_mindspore(args):
    """Returns a row for each of STEPS; mindstudio-probe, which takes seconds a step, is given fewer of them."""
    rounds = {"ours": max(3, args.steps // 5), "old": max(2, args.steps // 20)}
    rows = []
    for net, level, mode, limit in STEPS:
        row = {"net": net, "level": level, "mode": mode, "limit": limit}
        for tool, env in (("ours", OURS_MINDSPORE), ("old", OLD_MINDSPORE)):
            if tool == "old" and mode == "idle":  # it replaces functions for good: there is no step without it
                continue
            short = mode in ("forward", "idle")  # such steps scatter
            command = [env / "bin" / "python", ROOT / "bench" / "mindspore_steps.py", net, level, mode]
            if tool == "old" or not short:
                row[tool] = measured([*command, rounds[tool]])
            else:
                row[tool] = middle([measured([*command, rounds[tool] * 3]) for _ in range(PROCESSES)])
        rows.append(row)
        old = f", mindstudio-probe {row['old']['wall']:.2f}" if "old" in row else ""
        ours = row["ours"]
        text = f"{net} {level} {mode}: ours {ours['wall']:.3f} (CPU {ours['cpu']:.3f}, goal {limit:.2f}){old}"
        each = f"; processes {' '.join(f'{wall:.2f}' for wall in ours['each'])}" if "each" in ours else ""
        print(f"mindspore {text}; base {ours['base_ms']:.0f} ms{each}", flush=True)
    return rows


def section(rows):
    lines = [
        "## A training step of MindSpore under capture",
        "",
        "`bench/run.py --only mindspore`: MindSpore 2.10 in PyNative mode on a CPU, statistics, the same ratio. `conv`: two convolutions of 16",
        "and 32 channels on 16 images of 32 x 32; `transformer`: 4 layers of width 64 on mint, batch 8, sequence 64. mindstudio-probe records",
        "nothing on a CPU by itself and is given the one operator that it lacks. A wait for a value waits for all operators that were",
        "launched and keeps a core busy meanwhile; so values are read when the training waits itself, and before what may change them.",
        "On two cores the waiting thread and those of the operators disturb each other: a bare step takes up to three times as long in one",
        "process as in the next, and ratios scatter by a tenth and more, below 1, too: of short steps the median of seven processes counts.",
        "Files and hooks of a step of the transformer's forward pass and the statistics of its 88 operators take 5 ms.",
        "",
        "| network | level | content | goal | ours | mindstudio-probe | ours, CPU time | step without a tool |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ours = row["ours"]
        beside = f"{row['old']['wall']:.1f}" if "old" in row else "-"
        lines.append(
            f"| {row['net']} | {row['level']} | {WORDS[row['mode']]} | {row['limit']:.2f} | **{ours['wall']:.2f}** | "
            f"{beside} | {ours['cpu']:.2f} | {ours['base_ms']:.0f} ms |"
        )
    return [*lines, ""]

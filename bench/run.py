"""Both tools in one run on the same data; prints the ratios and, with --write, docs/performance.md.

    make bench                                  # or
    .venv/bin/python bench/run.py --only step --steps 40 --write

Parts: `start` (time to --help), `step` (a training step with the tool over one without), `mindspore` (the same; mindspore_bench.py),
`statistics`, `tensor`, `xlsx`, `fuzzy`,
`ranks` and `memory` (msprobe compare on large dumps; compare_bench.py), `graph_scale` (graphs of up to 1,000,000 nodes;
graph_scale.py), `page` (the page in Chromium and the server under load; page.py) and `overflow`. What a run measured is kept in
out/bench.json, and --write puts the parts of all runs on this machine into docs/performance.md, so that a long bench may be taken in pieces.

mindstudio-probe runs from .venv-old, ours from .venv, or from the release build that MSPROBE_BIN names. The large dumps are made by the
generators beside the golden data (MSPROBE_GOLDEN or ../shared/golden); without them the parts that need them are left out, and the
report says so.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

from compare_bench import CompareBench, save
from compare_bench import section as compare_section
from graph_scale import graph_scale
from graph_scale import section as graph_section
from measure import OLD, OURS, ROOT, command_of, measured
from mindspore_bench import bench_mindspore
from mindspore_bench import section as mindspore_section
from page import bench_page
from page import section as page_section

GOLDEN = pathlib.Path(os.environ.get("MSPROBE_GOLDEN", ROOT.parent / "shared" / "golden"))
COMPARE = ("statistics", "tensor", "xlsx", "ranks", "fuzzy", "memory")
LARGE = (*COMPARE, "graph_scale", "overflow", "page")
HEADINGS = (
    "A training step under capture",
    "A training step of MindSpore under capture",
    "On a GPU",
    "Comparing",
    "Graphs",
    "Kernel dumps",
    "Checkpoints",
    "The page",
    "Large files",
    "Start",
    "Memory of the recorder",
    "Memory of the comparison",
    "Estimate and measurement",
)


# (model, level, task, summary_mode, where): what is measured of a training step.
STEPS = (
    ("small", "L0", "statistics", "statistics", "memory"),
    ("small", "L1", "statistics", "statistics", "memory"),
    ("small", "mix", "statistics", "statistics", "memory"),
    ("small", "mix", "statistics", "md5", "memory"),
    ("small", "mix", "tensor", "statistics", "memory"),
    ("small", "mix", "tensor", "statistics", "disk"),
    ("big", "mix", "statistics", "statistics", "memory"),
    ("conv", "mix", "statistics", "statistics", "memory"),
    ("resnet18", "mix", "statistics", "statistics", "memory"),
    ("tiny", "mix", "statistics", "statistics", "memory"),
)
# A step of these takes seconds under mindstudio-probe.
SLOW = {"big": 4, "conv": 4, "resnet18": 4}


def bench_step(args):
    rows = []
    for model, level, task, summary, where in STEPS:
        row = {"model": model, "level": level, "task": task, "summary": summary, "where": where}
        label = f"{model} {level} {summary if task == 'statistics' else task}{' on disk' if where == 'disk' else ''}"
        share = SLOW.get(model, 1) * (2 if task == "tensor" else 1)
        for name, env in (("ours", OURS), ("old", OLD)):
            steps = max(3, (args.steps if name == "ours" else args.steps // 4) // share)
            command = [env / "bin" / "python", ROOT / "bench" / "step_ratio.py", "--model", model, "--level", level]
            command += ["--task", task, "--summary", summary, "--steps", steps]
            if where == "disk":
                command += ["--dir", args.disk]
            result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            if result.returncode != 0:
                sys.exit(f"step_ratio.py failed under {env}:\n{result.stderr[-2000:]}")
            row[name] = json.loads(result.stdout.strip().splitlines()[-1])
        rows.append(row)
        ours, old = row["ours"], row["old"]
        print(
            f"step {label}: ours {ours['wall_ratio']:.2f} (CPU {ours['cpu_ratio']:.2f}, idle {ours['idle_ratio']:.3f}), "
            f"mindstudio-probe {old['wall_ratio']:.2f} (CPU {old['cpu_ratio']:.2f}); overhead "
            f"{(old['wall_ratio'] - 1) / max(ours['wall_ratio'] - 1, 1e-3):.0f} times less"
            + (f"; {ours['dump_mb_per_s']:.0f} of {ours['disk_mb_per_s']:.0f} MB/s" if task == "tensor" else ""),
            flush=True,
        )
    return rows


def bench_overflow(large, args, work):
    data = large.make_large(args.rank_nodes, 8)
    arguments = ["overflow_check", "-i", str(data / "problem" / "step0")]
    result = {"nodes": "8 ranks of 10,784" if args.rank_nodes == 20000 else "8 ranks"}
    for name, runs in (("ours", 3), ("old", 1)):
        times, peaks = [], []
        for _ in range(runs):
            out = work / f"out_{name}"
            shutil.rmtree(out, ignore_errors=True)
            run = measured([command_of(name), *arguments, "-o", out])
            times.append(run["seconds"])
            peaks.append(run["peak_mb"])
            shutil.rmtree(out, ignore_errors=True)
        result[name] = {"seconds": statistics.median(times), "peak_mb": max(peaks)}
    ours, old = result["ours"], result["old"]
    result["speedup"] = old["seconds"] / ours["seconds"]
    result["memory"] = ours["peak_mb"] / old["peak_mb"]
    print(
        f"overflow_check, {result['nodes']} nodes: ours {ours['seconds']:.2f} s, {ours['peak_mb']:.0f} MB; mindstudio-probe "
        f"{old['seconds']:.1f} s, {old['peak_mb']:.0f} MB: {result['speedup']:.0f} times faster with "
        f"{result['memory']:.0%} of the memory",
        flush=True,
    )
    return result


def bench_start():
    result = {}
    for name, runs in (("ours", 20), ("old", 3)):
        result[name] = statistics.median(measured([command_of(name), "--help"])["seconds"] for _ in range(runs))
    print(f"--help: ours {result['ours'] * 1e3:.1f} ms, mindstudio-probe {result['old'] * 1e3:.0f} ms", flush=True)
    return result


def report(results, args):
    lines = [
        "# Performance",
        "",
        "Both tools run one after the other on the same data and the same machine by one command:",
        "",
        "```",
        f"make bench        # .venv/bin/python bench/run.py --nodes {args.nodes} --write",
        "```",
        "",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}. Beside ours: mindstudio-probe 26.2.0.",
        "",
    ]
    if "step" in results:
        lines += [
            "## A training step under capture",
            "",
            "The ratio is the time from `start()` to the end of `step()`, all files written, over the same step without a tool (median; steps",
            "alternate), one torch thread, float32. `small`: LLaMA, hidden 256, 4 layers, batch 2, sequence 128; `big`: hidden 1024, 2 layers,",
            "batch 1, sequence 512; `tiny`: hidden 64, 2 layers, batch 1, sequence 16; `conv`: residual blocks of 32 to 256",
            "channels on 16 images of 64 x 64; `resnet18`: the usual widths, 64 to 512, on 4 images of 224 x 224.",
            "",
            "| model | level | content | ours | mindstudio-probe | ours, CPU time | constructed but idle | entries | MB per step |",
            "|---|---|---|--:|--:|--:|--:|--:|--:|",
        ]
        for row in results["step"]:
            ours, old = row["ours"], row["old"]
            content = (
                row["summary"]
                if row["task"] == "statistics"
                else f"tensor files {'on' if row['where'] == 'disk' else 'in'} {row['where']}"
            )
            lines.append(
                f"| {row['model']} | {row['level']} | {content} | **{ours['wall_ratio']:.2f}** | {old['wall_ratio']:.2f} | "
                f"{ours['cpu_ratio']:.2f} | {ours['idle_ratio']:.3f} | {ours['entries']} | {ours['bytes_per_step'] / 1e6:.1f} |"
            )
        for row in results["step"]:
            if row["where"] == "disk":
                ours = row["ours"]
                lines += [
                    "",
                    f"Tensor files on disk: {ours['dump_mb_per_s']:.0f} MB/s while the training runs, where one large file reaches "
                    f"{ours['disk_mb_per_s']:.0f} MB/s, both into the memory of the system; until everything is on the medium, many steps, "
                    f"computing included, reach {ours['durable_mb_per_s']:.0f} MB/s and one file of as many bytes "
                    f"{ours['disk_durable_mb_per_s']:.0f} MB/s: "
                    f"**{100 * ours['durable_mb_per_s'] / ours['disk_durable_mb_per_s']:.0f}%**. "
                    f"{ours['bytes_with_links'] / 1e6:.0f} MB of tensors lie in "
                    f"{ours['bytes_per_step'] / 1e6:.0f} MB, because equal contents are links.",
                ]
        lines.append("")
    if "mindspore" in results:
        lines += mindspore_section(results["mindspore"])
    if set(COMPARE) & set(results):
        lines += compare_section(results, args)
    if "graph_scale" in results:
        lines += graph_section(results["graph_scale"])
    if "page" in results:
        lines += page_section(results["page"])
    if "overflow" in results:
        r = results["overflow"]
        lines += [
            "## Large files",
            "",
            "`overflow_check`: 8 ranks of 10,784 nodes, statistics.",
            "",
            "| command | ours | mindstudio-probe | faster | peak memory, ours | mindstudio-probe |",
            "|---|--:|--:|--:|--:|--:|",
            f"| `overflow_check`, 8 ranks | {r['ours']['seconds']:.2f} s | {r['old']['seconds']:.1f} s | "
            f"**{r['speedup']:.0f} times** | {r['ours']['peak_mb']:.0f} MB | {r['old']['peak_mb']:.0f} MB |",
            "",
        ]
    if "start" in results:
        r = results["start"]
        lines += [
            "## Start",
            "",
            f"`msprobe --help`: {r['ours'] * 1e3:.1f} ms; mindstudio-probe {r['old'] * 1e3:.0f} ms.",
            "",
        ]
    path = ROOT / "docs" / "performance.md"
    path.write_text(merge(path.read_text(), "\n".join(lines)))


def merge(before, measured_now):
    """Sections that were measured take the place of those with the same heading; others stay as they are."""

    def split(text):
        head, *rest = ("\n" + text).split("\n## ")
        return head.strip("\n"), {part.partition("\n")[0]: part.partition("\n")[2].strip("\n") for part in rest}

    _, old = split(before)
    head, new = split(measured_now)
    sections = {**old, **new}
    order = [h for h in HEADINGS if h in sections] + [h for h in sections if h not in HEADINGS]
    return "\n\n".join([head, *(f"## {h}\n\n{sections[h]}" for h in order)]) + "\n"


def main():
    parts = ("start", "step", "mindspore", *LARGE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    by_hand = ("huge",)  # needs 20 GB of disk
    parser.add_argument("--only", choices=(*parts, *by_hand), action="append", help="huge: only when it is named")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--nodes", type=int, default=100000)
    parser.add_argument("--disk", default=str(ROOT / "out"), help="a directory on a disk, for tensor files")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--keep", help="directory for the large dumps, kept between runs")
    parser.add_argument("--tensors", help="what gen_bigtensor.sh made, when it is there already")
    parser.add_argument(
        "--slow", action="store_true", help="also what takes mindstudio-probe five minutes (-fm at 20,000 nodes)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small data: whether every part runs; its figures mean little, none is kept",
    )
    args = parser.parse_args()
    if args.quick and args.write:
        parser.error("--quick measures nothing that could be written")
    args.rank_nodes, args.many_nodes, args.copies, args.huge_copies = 20000, 1_000_000, 4, 6
    if args.quick:
        args.nodes = args.rank_nodes = args.many_nodes = 5000
        args.steps, args.copies, args.huge_copies = 4, 1, 2
    wanted = args.only or list(parts)
    if not (GOLDEN / "gen").is_dir() and set(LARGE) & set(wanted):
        print(f"left out: {', '.join(LARGE)} ({GOLDEN}/gen, the generators of large dumps, is not here)")
        wanted = [p for p in wanted if p not in LARGE]

    pathlib.Path(args.disk).mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="msprobe_bench_"))
    work.mkdir(parents=True, exist_ok=True)
    large = CompareBench(args, work, GOLDEN)
    kept = ROOT / "out" / "bench.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    try:
        for part in wanted:
            if part == "step":
                results[part] = bench_step(args)
            elif part == "mindspore":
                results[part] = bench_mindspore(args)
            elif part == "start":
                results[part] = bench_start()
            elif part in COMPARE or part in by_hand:
                results[part] = getattr(large, part)()
            elif part == "page":
                results[part] = bench_page(large, args, work)
            elif part == "graph_scale":
                results[part] = graph_scale(large, args, work)
            else:
                results[part] = bench_overflow(large, args, work)
            if not args.quick:
                save(kept, results)
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    if args.write:
        report(results, args)
        subprocess.run([sys.executable, ROOT / "tools" / "readme_figures.py"], check=True)
        print("written: docs/performance.md, and the figures of README.md and README.zh.md")


if __name__ == "__main__":
    main()

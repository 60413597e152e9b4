"""Graphs of 100,000 nodes with both tools, of 1,000,000 nodes and of 8 ranks with ours; --write puts them into docs/performance.md.

    .venv/bin/python bench/graph_scale.py --keep /tmp/dumps --write

The dumps come from the generator that bench/run.py uses. `--without-old` leaves the old tool out, `--million` adds 1,000,000 nodes.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

from run import GOLDEN, OLD, OURS, ROOT, make_large, measured

HEADING = "## Graphs"


def timed(command, arguments, out, runs, threads=None):
    """Median seconds, peak MB and MB of the file."""
    seconds, peaks, size = [], [], 0
    if threads is not None:
        os.environ["MSPROBE_THREADS"] = str(threads)
    try:
        for _ in range(runs):
            shutil.rmtree(out, ignore_errors=True)
            wall, peak = measured([str(command), "graph_visualize", *map(str, arguments), "-o", str(out)])
            seconds.append(wall)
            peaks.append(peak)
            size = sum(f.stat().st_size for f in out.iterdir()) / 1e6
    finally:
        os.environ.pop("MSPROBE_THREADS", None)
        shutil.rmtree(out, ignore_errors=True)
    return {"seconds": statistics.median(seconds), "peak_mb": max(peaks), "file_mb": size}


def sides(data, rank=True):
    place = ("step0", "rank0") if rank else ("step0",)
    return [data.joinpath(side, *place) for side in ("problem", "bench")]


def row(label, ours, old=None):
    cells = [f"{ours['seconds']:.2f} s", f"{ours['peak_mb']:.0f} MB", f"{ours['file_mb']:.0f} MB"]
    if old:
        cells += [f"{old['seconds']:.1f} s", f"{old['peak_mb']:.0f} MB", f"{old['file_mb']:.0f} MB"]
        cells.append(f"**{old['seconds'] / ours['seconds']:.0f} times**")
    else:
        cells += ["", "", "", ""]
    line = f"| {label} | " + " | ".join(cells) + " |"
    print(line, flush=True)
    return line


def bench(args, work):
    ours = pathlib.Path(args.command)
    lines = []
    target, golden = sides(make_large(work, args.nodes))
    for label, arguments in (("build", ["-tp", target]), ("compare", ["-tp", target, "-gp", golden])):
        mine = timed(ours, arguments, work / "out_ours", 3)
        theirs = None if args.without_old else timed(OLD / "bin" / "msprobe", arguments, work / "out_old", 1)
        lines.append(row(f"{label}, {args.nodes:,} nodes a side", mine, theirs))
    if args.ranks:
        target, golden = sides(make_large(work, 20000, args.ranks), rank=False)
        for threads in (1, os.cpu_count()):
            mine = timed(ours, ["-tp", target, "-gp", golden], work / "out_ours", 3, threads)
            lines.append(
                row(f"compare, {args.ranks} ranks of 20,000 nodes, {threads} thread{'s' * (threads > 1)}", mine)
            )
    if args.million:
        target, golden = sides(make_large(work, 1000000))
        for label, arguments in (("build", ["-tp", target]), ("compare", ["-tp", target, "-gp", golden])):
            lines.append(row(f"{label}, 1,000,000 nodes a side", timed(ours, arguments, work / "out_ours", 1)))
    return lines


def write(lines):
    path = ROOT / "docs" / "performance.md"
    before, _, after = path.read_text().partition(HEADING)
    _, mark, rest = after.partition("\n## ")
    table = [
        HEADING,
        "",
        "`graph_visualize` on statistics dumps: `bench/graph_scale.py --million --write`. The peak counts the mapped input files.",
        "",
        "| | ours | peak | file | old tool | peak | file | faster |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        *lines,
        "",
    ]
    path.write_text(before.rstrip("\n") + "\n\n" + "\n".join(table) + mark + rest)
    print("written: docs/performance.md")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100000)
    parser.add_argument("--ranks", type=int, default=8, help="0 leaves the ranks out")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--without-old", action="store_true")
    parser.add_argument("--command", default=str(OURS / "bin" / "msprobe"), help="our command")
    parser.add_argument("--keep", help="directory for the large dumps, kept between runs")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    args = parser.parse_args()
    if not (GOLDEN / "gen").is_dir():
        sys.exit(f"{GOLDEN}/gen, the generator of large dumps, is not here: set MSPROBE_GOLDEN")
    work = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="msprobe_bench_"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        lines = bench(args, work)
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    if args.write:
        write(lines)


if __name__ == "__main__":
    main()

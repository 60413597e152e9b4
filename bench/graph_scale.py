"""The part `graph_scale` of bench/run.py: graphs of 100,000 nodes and of 8 ranks with both tools, of 1,000,000 nodes with ours."""

import os
import pathlib
import shutil
import statistics

from measure import command_of, measured

HEADING = "Graphs"
RANKS = 8


def visualized(tool, arguments, out, runs, threads=None):
    """Median seconds, peak MB and MB of the file."""
    env = None if threads is None else {"MSPROBE_THREADS": str(threads)}
    results = []
    for _ in range(runs):
        shutil.rmtree(out, ignore_errors=True)
        result = measured([command_of(tool), "graph_visualize", *arguments, "-o", out], env)
        result["file_mb"] = sum(f.stat().st_size for f in out.iterdir()) / 1e6
        results.append(result)
        shutil.rmtree(out, ignore_errors=True)
    return {
        "seconds": statistics.median(r["seconds"] for r in results),
        "peak_mb": max(r["peak_mb"] for r in results),
        "file_mb": results[0]["file_mb"],
    }


def commands_of(data, place):
    target, golden = (data.joinpath(side, *place) for side in ("problem", "bench"))
    return (("build", ["-tp", target]), ("compare", ["-tp", target, "-gp", golden]))


def graph_scale(large, args, work):
    out = pathlib.Path(work) / "out_graph"
    rows = []

    def add(label, ours, old=None):
        rows.append({"label": label, "ours": ours, "old": old})
        text = f"{label}: ours {ours['seconds']:.2f} s, {ours['peak_mb']:.0f} MB, file {ours['file_mb']:.0f} MB"
        if old:
            text += f"; mindstudio-probe {old['seconds']:.1f} s, {old['peak_mb']:.0f} MB, file {old['file_mb']:.0f} MB"
            text += f": {old['seconds'] / ours['seconds']:.0f} times faster"
        print(text, flush=True)

    for what, arguments in commands_of(large.make_large(args.nodes), ("step0", "rank0")):
        ours = visualized("ours", arguments, out, 5)
        add(f"{what}, {args.nodes:,} nodes a side", ours, visualized("old", arguments, out, 1))
    _, (_, arguments) = commands_of(large.make_large(args.rank_nodes, RANKS), ("step0",))
    label = f"compare, {RANKS} ranks of {args.rank_nodes:,} nodes, "
    add(label + "1 thread", visualized("ours", arguments, out, 3, threads=1))
    ours = visualized("ours", arguments, out, 3)
    add(f"{label}{os.cpu_count()} threads", ours, visualized("old", arguments, out, 1))
    for what, arguments in commands_of(large.make_large(args.many_nodes), ("step0", "rank0")):
        add(f"{what}, {args.many_nodes:,} nodes a side", visualized("ours", arguments, out, 1))
    return rows


def section(rows):
    lines = [
        f"## {HEADING}",
        "",
        "`graph_visualize` on statistics dumps (`bench/run.py --only graph_scale`). Results are on disk before the command ends",
        "(ours). The peak counts the pages of the input files that are in memory.",
        "",
        "| command | ours | peak | file | mindstudio-probe | peak | file | faster |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ours, old = row["ours"], row["old"]
        cells = [f"{ours['seconds']:.2f} s", f"{ours['peak_mb']:.0f} MB", f"{ours['file_mb']:.0f} MB"]
        if old:
            cells += [f"{old['seconds']:.1f} s", f"{old['peak_mb']:.0f} MB", f"{old['file_mb']:.0f} MB"]
            cells.append(f"**{old['seconds'] / ours['seconds']:.0f} times**")
        else:
            cells += ["-"] * 4
        lines.append(f"| {row['label']} | {' | '.join(cells)} |")
    return [*lines, ""]

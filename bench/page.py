"""The part `page` of bench/run.py: the page in Chromium beside the tb-graph-ascend, and the server under load."""

import json
import math
import os
import statistics
import subprocess

from measure import OLD, ROOT
from page_file import page_file
from serve_load import percentile, serve_load

HEADING = "The page"
TENSORBOARD = ROOT / ".venv-tb" / "bin" / "tensorboard"
RUNS = 5
LATE = "not in 60 s"  # page_speed.mjs gives up a step then


def measured_page(path, runs, logdir=None):
    command = ["node", ROOT / "bench" / "page_speed.mjs", path, runs, *([TENSORBOARD, logdir] if logdir else [])]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"page_speed.mjs failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def summary(times):
    """A step that did not end in its limit is None among the times; it counts as the slowest."""
    known = [math.inf if t is None else t for t in times]
    return {"median": statistics.median(known), "p95": percentile(known, 0.95)}


def figures(ours):
    out = {
        key: summary(ours[key])
        for key in ("first", "warm", "expand", "again", "pan", "zoom", "details", "search", "typed")
    }
    return {**out, "rss_mb": max(ours["rss_mb"]), "peak_mb": max(ours["peak_mb"]), "faults": ours["faults"]}


def bench_page(large, args, work):
    runs = 2 if args.quick else RUNS
    many = page_file(large, args.many_nodes, work)
    result = {"many": figures(measured_page(many, runs)["ours"]), "many_nodes": args.many_nodes, "nodes": args.nodes}
    result["load"] = serve_load(many, 5 if args.quick else 60, 200)
    few, earlier = page_file(large, args.nodes, work), None
    if TENSORBOARD.exists() and OLD.exists():
        earlier = page_file(large, args.nodes, work, "old").parent.parent
    both = measured_page(few, runs, earlier)
    result["few"] = figures(both["ours"])
    if "earlier" in both:
        found = both["earlier"]
        result["earlier"] = {key: summary(found[key]) for key in ("first", "expand", "details", "search")}
        result["earlier"]["peak_mb"] = found["peak_mb"]
    for line in section(result):
        print(line, flush=True)
    return result


ROWS = (
    ("first paint, nothing of the file in the server's memory", "first", "800"),
    ("first paint again", "warm", "-"),
    ("a module of 10,000 calls opens on both sides", "expand", "150"),
    ("the same with the server warm", "again", "-"),
    ("a frame while panning", "pan", "33"),
    ("a frame while zooming", "zoom", "33"),
    ("details of a node", "details", "50"),
    ("search or filter, the server's answer", "search", "100"),
    ("search, from the key to the list", "typed", "-"),
)


def section(r):
    def cell(side, key):
        value = r.get(side, {}).get(key)
        if not value:
            return "-"
        median, p95 = (f"{v:.0f}" if math.isfinite(v) else LATE for v in (value["median"], value["p95"]))
        return median if median == LATE else f"{median} ({p95})"

    lines = [
        f"## {HEADING}",
        "",
        "`bench/run.py --only page`: headless Chromium, drawing in software, milliseconds from the user's act to the frame that shows",
        f"its result, median and 95 % in brackets. `graph_visualize -gp` of {r['many_nodes']:,} and {r['nodes']:,} ops a side (1.3 nodes an op),",
        "one module with 10,000 calls. Of tb-graph-ascend 8.3.2 on its own file of the same dumps: its page until a",
        "node is drawn, and the answers of its routes (expand, details, nodes with errors), without what its page does with them.",
        "",
        f"| | goal | {r['many_nodes']:,} | {r['nodes']:,} | tb-graph-ascend, {r['nodes']:,} |",
        "|---|--:|--:|--:|--:|",
    ]
    for label, key, goal in ROWS:
        lines.append(f"| {label} | {goal} | {cell('many', key)} | {cell('few', key)} | {cell('earlier', key)} |")
    old = f"{r['earlier']['peak_mb']:.0f} MB" if "earlier" in r else "-"
    lines.append(
        f"| memory of the server, peak | 300 MB | {r['many']['peak_mb']:.0f} MB | {r['few']['peak_mb']:.0f} MB | {old} |"
    )
    load = r["load"]
    lines += [
        "",
        f"Load on the larger file ({os.cpu_count()} cores, 8 clients, half of them with a new connection for each question): "
        f"{load['asked'] / load['seconds']:.0f} questions a second for {load['seconds']:.0f} s,",
        f"{len(load['faults'])} wrong answers; answered in {load['p50_ms']:.1f} ms (median), {load['p99_ms']:.0f} ms (99 %); unknown nodes and bad",
        f"parameters refused in {load['refused_p50_ms']:.1f} ms and {load['refused_p99_ms']:.0f} ms. Memory {load['first_mb']:.0f} MB at the start, "
        f"{load['last_mb']:.0f} MB at the end, {load['most_mb']:.0f} MB at most.",
        "",
    ]
    return lines

"""The parts of bench/run.py about `msprobe compare`: each runs both tools on the same data and returns a row."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from huge_dumps import enlarge
from measure import OLD, command_of, evict, measured, read_all, repeated

GENERATED = "step0", "rank0"
# -fm of mindstudio-probe: some 16 s at 5,000 nodes, 300 s at 20,000.
OLD_FUZZY_NODES, OLD_FUZZY_SLOW = 5000, 20000


def dumps_of(data):
    """(target, golden) directories of a rank, as the generators lay them out."""
    target = next(d for d in (data / "problem", data / "weight") if d.exists())
    return target.joinpath(*GENERATED), (data / "bench").joinpath(*GENERATED)


def compare(tool, target, golden, out, *options, env=None, first=False):
    shutil.rmtree(out, ignore_errors=True)
    command = [command_of(tool), "compare", "-tp", target, "-gp", golden, "-o", out, *options]
    result = measured(command, env, first)
    result["output_mb"] = sum(f.stat().st_size for f in out.rglob("*") if f.is_file()) / 1e6
    shutil.rmtree(out, ignore_errors=True)
    return result


class CompareBench:
    def __init__(self, args, work, golden_set):
        self.args, self.work, self.golden_set = args, work, golden_set
        self.out = work / "out"

    def make_large(self, nodes, ranks=1):
        target = self.work / (f"mega{nodes}" if ranks == 1 else f"mega{nodes}_{ranks}")
        if not target.exists():
            part = target.with_suffix(".part")
            generator = self.golden_set / "gen" / "make_mega.py"
            command = [sys.executable, generator, part, "--nodes", nodes, "--ranks", ranks]
            subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
            part.rename(target)
        return target

    def make_tensors(self):
        if self.args.tensors:
            return pathlib.Path(self.args.tensors)
        target = self.work / "bigtensor"
        if not target.exists():
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            env["PATH"] = f"{OLD / 'bin'}:{env['PATH']}"
            script = self.golden_set / "gen" / "gen_bigtensor.sh"
            subprocess.run(["bash", str(script), str(target)], check=True, stdout=subprocess.DEVNULL, env=env)
        return target

    def pair(self, name, target, golden, *options, runs=5, old=True, first=False):
        """Ours `runs` times and, in the same run, mindstudio-probe once."""
        row = {"ours": repeated(runs, lambda: compare("ours", target, golden, self.out, *options, first=first))}
        text = f"{name}: ours {row['ours']['seconds']:.2f} s, {row['ours']['peak_mb']:.0f} MB"
        if "first_s" in row["ours"]:
            text += f", first line after {row['ours']['first_s']:.2f} s"
        print(text, flush=True)
        if old:
            self.beside_old_tool(name, row, target, golden, *options)
        return row

    def beside_old_tool(self, name, row, target, golden, *options):
        row["old"] = compare("old", target, golden, self.out, *options)
        row["speedup"] = row["old"]["seconds"] / row["ours"]["seconds"]
        seconds, peak = row["old"]["seconds"], row["old"]["peak_mb"]
        print(f"{name}: mindstudio-probe {seconds:.1f} s, {peak:.0f} MB: {row['speedup']:.0f} times faster", flush=True)

    def statistics(self):
        target, golden = dumps_of(self.make_large(self.args.nodes))
        row = self.pair("statistics", target / "dump.json", golden / "dump.json", first=True)
        row["nodes"] = self.args.nodes
        return row

    def tensor(self):
        data = self.make_tensors()
        target, golden = (d / "dump.json" for d in dumps_of(data))
        row = self.pair("tensor files", target, golden)
        cold, reading = [], {1: [], 4: [], 16: []}
        for _ in range(3):
            for readers, seconds in reading.items():
                row["bytes"] = evict(data)
                seconds.append(read_all([target.parent, golden.parent], readers))
            evict(data)
            cold.append(compare("ours", target, golden, self.out)["seconds"])
        # The disk's best, with as many readers as it likes.
        row["read_s"], row["cold_s"] = min(statistics.median(s) for s in reading.values()), statistics.median(cold)
        print(
            f"tensor files, not in memory: {row['cold_s']:.2f} s; reading alone takes {row['read_s']:.2f} s "
            f"({row['bytes'] / row['read_s'] / 1e9:.2f} GB/s): {row['read_s'] / row['cold_s']:.0%} of the disk",
            flush=True,
        )
        return row

    def xlsx(self):
        target, golden = dumps_of(self.make_large(self.args.nodes))
        return self.pair("workbook", target / "dump.json", golden / "dump.json", "--xlsx", runs=3)

    def fuzzy(self):
        """mindstudio-probe's time grows with the square: where it takes minutes it is left out unless --slow asks for it."""
        rows, measured = [], None
        for nodes in sorted({5000, self.args.rank_nodes, self.args.nodes}):
            old = nodes <= OLD_FUZZY_NODES or (self.args.slow and nodes <= OLD_FUZZY_SLOW)
            target, golden = (d / "dump.json" for d in dumps_of(self.make_large(nodes)))
            row = {"nodes": nodes, **self.pair(f"-fm at {nodes:,}", target, golden, "-fm", runs=3, old=old)}
            if old:
                measured = row
            elif measured:
                seconds = measured["old"]["seconds"] * (nodes / measured["nodes"]) ** 2
                row["expected_old_s"] = seconds
                print(
                    f"-fm at {nodes:,}: mindstudio-probe would take about {seconds:.0f} s (the square of the nodes, from "
                    f"{measured['nodes']:,}): {seconds / row['ours']['seconds']:.0f} times",
                    flush=True,
                )
            rows.append(row)
        return rows

    def ranks(self):
        data = self.make_large(self.args.rank_nodes, 8)
        target, golden = (d.parent for d in dumps_of(data))
        row = {"threads": {}}
        cores = len(os.sched_getaffinity(0))
        counts = sorted({1, 2, 4, 8, cores} & set(range(1, cores + 1)))
        for threads in counts:
            env = {"MSPROBE_THREADS": str(threads)}
            result = repeated(3, lambda env=env: compare("ours", target, golden, self.out, env=env))
            row["threads"][str(threads)] = result
            print(f"8 ranks, {threads} threads: {result['seconds']:.2f} s, {result['peak_mb']:.0f} MB", flush=True)
        row["ours"] = row["threads"][str(cores)]
        self.beside_old_tool("8 ranks", row, target, golden)
        return row

    def memory(self):
        """Ten gigabytes of tensors, and a million nodes; ours alone."""
        rows, nodes = [], self.args.many_nodes
        target, golden = (d / "dump.json" for d in dumps_of(self.make_large(nodes)))
        bytes_ = target.stat().st_size + golden.stat().st_size
        row = self.pair(f"{nodes:,} nodes", target, golden, runs=1, old=False, first=True)
        rows.append({"what": f"statistics, {nodes:,} nodes", "bytes": bytes_, **row["ours"]})
        data = self.make_tensors()
        root = self.work / "tensors_10gb"
        shutil.rmtree(root, ignore_errors=True)
        try:
            bytes_ = 0
            for side, source in zip(("target", "golden"), dumps_of(data)):
                for rank in range(self.args.copies):
                    shutil.copytree(source, root / side / "step0" / f"rank{rank}")
                bytes_ += evict(root / side)
            row = self.pair(f"{bytes_ / 1e9:.0f} GB", root / "target", root / "golden", runs=1, old=False, first=True)
            rows.append({"what": f"tensor files, {self.args.copies} ranks", "bytes": bytes_, **row["ours"]})
        finally:
            shutil.rmtree(root, ignore_errors=True)
        return rows

    def huge(self):
        """Ten gigabytes of statistics in two files; ours alone."""
        root = self.work / "statistics_10gb"
        shutil.rmtree(root, ignore_errors=True)
        try:
            sides = []
            for side, source in zip(("target", "golden"), dumps_of(self.make_large(self.args.many_nodes))):
                enlarge(source, root / side, self.args.huge_copies)
                sides.append(root / side / "dump.json")
            bytes_ = sum(s.stat().st_size for s in sides)
            row = self.pair(f"{bytes_ / 1e9:.1f} GB of statistics", *sides, runs=1, old=False, first=True)
            return {"what": f"statistics, {self.args.huge_copies} times that", "bytes": bytes_, **row["ours"]}
        finally:
            shutil.rmtree(root, ignore_errors=True)


def old_fuzzy(rows):
    """What is known of mindstudio-probe's -fm beyond the sizes it was run at."""
    per = [f"{r['old']['seconds']:.0f} s at {r['nodes']:,}" for r in rows if "old" in r]
    more = [f"about {r['expected_old_s']:.0f} s at {r['nodes']:,}" for r in rows if "expected_old_s" in r]
    text = "mindstudio-probe's time grows with the square of the nodes: " + ", ".join(per)
    return text + (" measured here, so " + ", ".join(more) if more else "") + "."


def section(results, args):
    """Markdown, from what was measured."""
    lines = [
        "## Comparing",
        "",
        "Time is wall time of the whole command, ours the median of several runs, mindstudio-probe's one run; both read the same files, which",
        "are in memory unless it says otherwise. Results are on disk before the command ends (ours).",
        "",
        "| command | ours | mindstudio-probe | faster | peak memory, ours | mindstudio-probe |",
        "|---|--:|--:|--:|--:|--:|",
    ]

    def add(label, r):
        old = r.get("old")
        lines.append(
            f"| {label} | {r['ours']['seconds']:.2f} s | "
            + (f"{old['seconds']:.1f} s | **{r['speedup']:.0f} times** | " if old else "- | - | ")
            + f"{r['ours']['peak_mb']:.0f} MB | "
            + (f"{old['peak_mb']:.0f} MB |" if old else "- |")
        )

    if "statistics" in results:
        add(f"statistics, {args.nodes:,} nodes (2 x 80 MB), csv", results["statistics"])
    if "xlsx" in results:
        add("the same to a workbook (268,000 rows)", results["xlsx"])
    if "tensor" in results:
        add("tensor files, 2 x 1.43 GB", results["tensor"])
    for r in results.get("fuzzy", []):
        add(f"`-fm`, {r['nodes']:,} nodes", r)
    if "ranks" in results:
        add("8 ranks of 20,000 nodes", results["ranks"])
    lines.append("")
    if "fuzzy" in results:
        per = ", ".join(f"{r['ours']['seconds'] / r['nodes'] * 1e6:.1f} us at {r['nodes']:,}" for r in results["fuzzy"])
        lines += [f"`-fm`, time a node: {per}. {old_fuzzy(results['fuzzy'])}", ""]
    if "ranks" in results:
        per = ", ".join(f"{r['seconds']:.2f} s with {n}" for n, r in results["ranks"]["threads"].items())
        lines += [f"8 ranks by threads: {per}.", ""]
    if "tensor" in results:
        r = results["tensor"]
        lines += [
            f"Tensor files that are not in memory: {r['cold_s']:.2f} s; reading the {r['bytes'] / 1e9:.2f} GB and nothing else (with 1, 4",
            f"or 16 readers, whichever is fastest) takes {r['read_s']:.2f} s ({r['bytes'] / r['read_s'] / 1e9:.2f} GB/s): the comparison",
            f"runs at **{r['read_s'] / r['cold_s']:.0%}** of the disk.",
            "",
        ]
    first = []
    if "first_s" in results.get("statistics", {}).get("ours", {}):
        first.append((f"{args.nodes:,} nodes", results["statistics"]["ours"]["first_s"]))
    if "memory" in results:
        lines += ["Large input, ours alone:", "", "| input | size | time | peak memory |", "|---|--:|--:|--:|"]
        for r in results["memory"] + ([results["huge"]] if "huge" in results else []):
            lines.append(f"| {r['what']} | {r['bytes'] / 1e9:.1f} GB | {r['seconds']:.1f} s | {r['peak_mb']:.0f} MB |")
            first.append((r["what"], r["first_s"]))
        lines.append("")
    if first:
        lines += ["First line of the result: " + ", ".join(f"after {s:.2f} s ({w})" for w, s in first) + ".", ""]
    return lines


def save(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))

"""How near `msprobe estimate` comes to what `msprobe run` then costs: bytes and time of a step, on four models.

    .venv/bin/python bench/estimate_accuracy.py             # prints estimate / measurement
    .venv/bin/python bench/estimate_accuracy.py --write     # and writes its section of docs/performance.md

For each model and kind of capture the same script runs under both commands, in turns and in a process of its own each time. Under `run`
every third step is recorded, so that each recorded step has bare neighbours: what it costs is the time of it and the step after it,
in which its files are closed, less that of a bare step. Figures are medians over all steps and rounds, and the time is compared as the
slowdown as well, which a machine that is faster in one process than in the next does not disturb.
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
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- estimate_accuracy: begin -->", "<!-- estimate_accuracy: end -->"
MODELS = ("llama", "conv", "bert", "mixtral")
KINDS = (("statistics", "L0"), ("statistics", "L1"), ("statistics", "mix"), ("tensor", "mix"))
PERIOD = 3  # one step in so many is recorded
_WARM = 2


def build(name):
    sys.path.insert(0, str(ROOT / "bench"))
    import step_ratio
    import torch

    torch.set_num_threads(1)
    if name in ("llama", "conv"):
        return step_ratio.build({"llama": "small"}.get(name, name))
    import transformers

    torch.manual_seed(0)
    if name == "bert":
        config = transformers.BertConfig(
            vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512
        )
        model, labels = transformers.BertForSequenceClassification(config), torch.tensor([0, 1])
    else:
        config = transformers.MixtralConfig(
            vocab_size=1000,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            num_local_experts=4,
            attn_implementation="eager",
            use_cache=False,
        )
        model, labels = transformers.MixtralForCausalLM(config), None
    tokens = torch.randint(0, 1000, (2, 64))
    return model, lambda m: m(input_ids=tokens, labels=tokens if labels is None else labels).loss


def loop(name, steps, result):
    """The training script; writes when each of its steps began."""
    model, loss_of = build(name)
    sys.path.insert(0, str(ROOT / "bench"))
    import step_ratio

    step = step_ratio.stepper(model, loss_of)
    began = []
    for _ in range(steps):
        began.append(time.perf_counter())
        step()
    pathlib.Path(result).write_text(json.dumps(began))


def msprobe(args, mode, options, script):
    command = [args.msprobe, mode, "-c", "config.json", *options, "--", sys.executable, __file__, *script]
    done = subprocess.run(command, cwd=args.work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def estimated(args, model, kind):
    options = ["--task", kind[0], "--level", kind[1], "--steps", str(args.steps), "--json"]
    out = msprobe(args, "estimate", options, ["--loop", model, "100000", "times.json"])
    result = json.loads(out.splitlines()[-1])
    return result["kinds"][0]["bytes"], result["kinds"][0]["seconds"], result["bare_seconds"]


def measured(args, model, kind):
    recorded = [_WARM + PERIOD * i for i in range(args.steps + 1)]
    options = ["--task", kind[0], "--level", kind[1], "--step", ",".join(map(str, recorded))]
    msprobe(args, "run", options, ["--loop", model, str(recorded[-1] + 4), "times.json"])
    began = json.loads((args.work / "times.json").read_text())
    bare, costs = [], []
    for i in recorded[1:]:  # the first one pays for hooking the model
        bare.append(began[i + 3] - began[i + 2])
        costs.append(began[i + 2] - began[i] - bare[-1])
    dump = args.work / "dump"
    sizes = {}
    for path in (dump / f"step{recorded[-1]}").rglob("*"):
        if path.name in ("dump.json", "stack.json", "construct.json") or path.suffix == ".pt":
            sizes[path.stat().st_ino] = path.stat().st_size
    shutil.rmtree(dump)
    return sum(sizes.values()), costs, bare


def compare(args, model, kind):
    guesses, costs, bares = [], [], []
    size = 0
    for _ in range(args.rounds):
        guesses.append(estimated(args, model, kind))
        size, some_costs, some_bares = measured(args, model, kind)
        costs += some_costs
        bares += some_bares
    guess, seconds, bare = (statistics.median(column) for column in zip(*guesses))
    real, real_bare = statistics.median(costs), statistics.median(bares)
    slowdown = statistics.median(s / b for _, s, b in guesses)
    return {
        "model": model,
        "task": kind[0],
        "level": kind[1],
        "bytes": guess,
        "real_bytes": size,
        "seconds": seconds,
        "real_seconds": real,
        "slowdown": slowdown,
        "real_slowdown": statistics.median(c / b for c, b in zip(costs, bares)),
        "bare": bare,
        "real_bare": real_bare,
    }


def write(rows, args):
    lines = [
        BEGIN,
        f"`bench/estimate_accuracy.py --steps {args.steps} --rounds {args.rounds} --write`: what `msprobe estimate` predicts",
        f"over what `msprobe run` costs then, medians. {os.cpu_count()} cores, {platform.machine()}, one torch thread, load average "
        f"{os.getloadavg()[1]:.1f}; dumps in memory.",
        "",
        "| model | content | level | bytes | estimate / real | s per step | estimate / real | slowdown | estimate / real |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        lines.append(
            f"| {r['model']} | {r['task']} | {r['level']} | {r['real_bytes']:,} | {r['bytes'] / r['real_bytes']:.3f} | "
            f"{r['real_seconds']:.4f} | {r['seconds'] / r['real_seconds']:.2f} | {r['real_slowdown']:.2f} | "
            f"{r['slowdown'] / r['real_slowdown']:.2f} |"
        )
    lines += [END, ""]
    path = ROOT / "docs" / "performance.md"
    text = path.read_text()
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    path.write_text(head.rstrip("\n") + "\n\n" + "\n".join(lines) + tail.lstrip("\n"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loop", nargs=3, metavar=("MODEL", "STEPS", "RESULT"), help="the training script itself")
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--kind", choices=["/".join(kind) for kind in KINDS], action="append")
    parser.add_argument("--steps", type=int, default=7, help="recorded steps in each process")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each command")
    parser.add_argument(
        "--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None, help="where dumps are written"
    )
    parser.add_argument("--msprobe", default=os.environ.get("MSPROBE_BIN", str(ROOT / ".venv" / "bin" / "msprobe")))
    parser.add_argument("--write", action="store_true", help="write the section of docs/performance.md")
    args = parser.parse_args()
    if args.loop:
        loop(args.loop[0], int(args.loop[1]), args.loop[2])
        return
    kinds = [kind for kind in KINDS if not args.kind or "/".join(kind) in args.kind]
    rows = []
    with tempfile.TemporaryDirectory(prefix="msprobe_bench_", dir=args.dir) as work:
        args.work = pathlib.Path(work)
        (args.work / "config.json").write_text(
            json.dumps({"task": "statistics", "level": "mix", "dump_path": f"{work}/dump"})
        )
        for model in args.model or MODELS:
            for kind in kinds:
                r = compare(args, model, kind)
                rows.append(r)
                print(
                    f"{model:<8} {kind[0]:<10} {kind[1]:<4} bytes {r['bytes'] / r['real_bytes']:.3f} of {r['real_bytes']:,}; "
                    f"time {r['seconds'] / r['real_seconds']:.2f} of {r['real_seconds'] * 1e3:.1f} ms; "
                    f"slowdown {r['slowdown']:.2f}, real {r['real_slowdown']:.2f} ({r['slowdown'] / r['real_slowdown']:.2f})",
                    flush=True,
                )
    off = [
        r
        for r in rows
        if abs(r["bytes"] / r["real_bytes"] - 1) > 0.1 or abs(r["seconds"] / r["real_seconds"] - 1) > 0.25
    ]
    print(f"{len(rows) - len(off)} of {len(rows)} within 10 % of the bytes and 25 % of the time")
    if args.write:
        write(rows, args)
        print("written: docs/performance.md")


if __name__ == "__main__":
    main()

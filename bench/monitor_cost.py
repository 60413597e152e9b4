"""What a monitor costs: the duration of a training step with TrainerMon over that without, of both tools.

    .venv/bin/python bench/monitor_cost.py [--rounds N] [--processes N] [--in-turn]

Each configuration runs in processes (pairs of them with --ranks 2) of its own, in which blocks of steps with and without the monitor
alternate on one model: two models of the same size differ by some percent of a step, by where their memory lies. The old tool cannot be
taken off a model, so that it gets a second one. A round is the duration of a step of a block with the monitor over that of the blocks
before and after it, each the median of its steps (of monitored and other steps apart, weighted by how often they come); the result is the
median of all rounds. Processor time of the process for one rank, wall time for two. Old tool: .venv-old.

With --in-turn every other step is monitored (step_interval 2) and stands over its two neighbours, ten to a round: on machines whose speed
drifts within seconds this tells tenths of a percent. What a monitor costs in steps that it does not look at is not in it.

What is written is removed at the end of all: for minutes after thousands of files were removed, ext4 takes ten times as long to make one
(0.3 ms instead of 0.03), and either tool makes six or more in each monitored step. For the same reason nothing else should have removed many before.

With --device cuda a block is waited for as a whole, as trainings that look at their loss now and then do, and its wall time counts.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPTIMIZER = {
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "ops": ["norm", "min", "max", "mean"],
}
ACTIVATIONS = {"xy_distribution": True, "ops": ["norm", "min", "max", "mean"]}
# Name -> (configuration, steps of a block after its first one, which of them are monitored).
CONFIGURATIONS = {
    "every 10 steps": ({**OPTIMIZER, "step_interval": 10}, 10, (9,)),
    "every step": (OPTIMIZER, 10, range(10)),
    "every step, activations": ({**ACTIVATIONS, "forward_only": True}, 10, range(10)),
    "every step, with activations": ({**OPTIMIZER, **ACTIVATIONS, "forward_only": True}, 10, range(10)),
    "every step, activations and their gradients": (ACTIVATIONS, 10, range(10)),
    "laws": ({"laws": {"first": 0}}, 50, (0, 49)),
    "health": ({"health": True}, 10, (9,)),
}
# Tool -> its Python, and a directory with its package where that Python has none.
TOOLS = {
    name: (os.path.join(ROOT, env, "bin/python"), "")
    for name, env in (("msprobe", ".venv"), ("mindstudio-probe", ".venv-old"))
}


def measure(name, rounds, out, device, in_turn):
    """In the process that trains: the ratio of each round, and the duration of a step without the monitor."""
    import torch

    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import step_ratio

    torch.set_num_threads(1)
    config, steps, monitored = CONFIGURATIONS[name]
    if in_turn:
        config = {**config, "step_interval": 2}
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    from msprobe.pytorch import TrainerMon

    path = os.path.join(out, f"config{os.environ.get('RANK', 0)}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"targets": {}, **config}, file)
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(out, "monitor")
    clock = time.process_time if ranks == 1 and device == "cpu" else time.perf_counter

    def trainer():
        model, loss_of = step_ratio.build("small", device)
        if ranks > 1:
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

        def step():
            loss_of(model).backward()
            optimizer.step()
            optimizer.zero_grad()

        return model, optimizer, step

    def watch(model, optimizer):
        monitor = TrainerMon(path, None, params_have_main_grad=False)
        monitor.set_monitor(model, optimizer)
        return monitor

    def block(step):
        # The first makes files and names series, which a run does once.
        step()
        if ranks > 1:
            torch.distributed.barrier()
        times = []
        if device != "cpu":
            torch.cuda.synchronize()
            begin = clock()
            for _ in range(steps):
                step()
            torch.cuda.synchronize()
            return [(clock() - begin) / steps] * steps
        for _ in range(steps):
            begin = clock()
            step()
            times.append(clock() - begin)
        return times

    model, optimizer, step = trainer()
    for _ in range(3):
        step()
    if in_turn:
        watch(model, optimizer)
        times = []
        # The first steps make files and name series.
        for _ in range(4 + 20 * rounds + 1):
            begin = clock()
            step()
            times.append(clock() - begin)
        report([2 * times[i] / (times[i - 1] + times[i + 1]) for i in range(4, len(times) - 1, 2)], times[3::2])
        return
    comes_off = hasattr(TrainerMon, "close")
    if not comes_off:
        other, its_optimizer, watched_step = trainer()
        watch(other, its_optimizer)
        for _ in range(3):
            watched_step()
    ratios, bare = [], [duration(block(step), ())]
    for _ in range(rounds):
        if comes_off:
            monitor = watch(model, optimizer)
            watched = duration(block(step), monitored)
            monitor.close()
        else:
            watched = duration(block(watched_step), monitored)
        bare.append(duration(block(step), ()))
        ratios.append(watched / ((bare[-2] + bare[-1]) / 2))
    report(ratios, bare)


def report(ratios, bare):
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps({"ratios": ratios, "step": statistics.median(bare)}))


def duration(times, monitored):
    """Of a step: the median of those that are monitored and of the others, weighted by how many they are."""
    kinds = [times[i] for i in monitored], [t for i, t in enumerate(times) if i not in monitored]
    return sum(statistics.median(kind) * len(kind) for kind in kinds if kind) / len(times)


def run(tool, name, ranks, given, directory):
    found = [run_once(tool, name, ranks, given, tempfile.mkdtemp(dir=directory)) for _ in range(given.processes)]
    ratios = sorted(ratio for one in found for ratio in one["ratios"])
    quarter = len(ratios) // 4
    return {
        "ratio": statistics.median(ratios),
        "range": (ratios[quarter], ratios[-1 - quarter]),
        "step": statistics.median(one["step"] for one in found),
    }


def run_once(tool, name, ranks, given, out):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        python, packages = TOOLS[tool]
        command = [python, __file__, "--measure", name, "--rounds", str(given.rounds), "--out", out]
        command += ["--device", given.device, *(["--in-turn"] if given.in_turn else [])]
        where = {"OMP_NUM_THREADS": "1", **({"PYTHONPATH": packages} if packages else {})}
        if ranks > 1:
            where.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
        children = [
            subprocess.Popen(
                command,
                env={**os.environ, **where, **({"RANK": str(rank)} if ranks > 1 else {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(ranks)
        ]
        texts = [child.communicate()[0] for child in children]
        line = next(line for line in texts[0].splitlines() if line.startswith("{"))
        return json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--in-turn", action="store_true", help="every other step is monitored")
    parser.add_argument("--measure")
    parser.add_argument("--out")
    parser.add_argument("--tools", default="msprobe,mindstudio-probe")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--names", help="of the configurations, with ; between")
    given = parser.parse_args()
    each = [name for name, (_, steps, monitored) in CONFIGURATIONS.items() if monitored == range(steps)]
    names = given.names.split(";") if given.names else each if given.in_turn else list(CONFIGURATIONS)[:5]
    if given.in_turn and (given.device != "cpu" or not set(names) <= set(each)):
        parser.error("--in-turn: only on the CPU, and only what is monitored at every step: " + "; ".join(each))
    if given.measure:
        measure(given.measure, given.rounds, given.out, given.device, given.in_turn)
        return
    print("| what is monitored | ranks | step without | " + " | ".join(given.tools.split(",")) + " |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        for name in names:
            for ranks in map(int, given.ranks.split(",")):
                tools = given.tools.split(",")
                found = {tool: run(tool, name, ranks, given, directory) for tool in tools}
                step = next(iter(found.values()))["step"]
                cells = " | ".join(
                    "{:.3f} ({:.3f} to {:.3f})".format(one["ratio"], *one["range"]) for one in found.values()
                )
                print(f"| {name} | {ranks} | {step * 1e3:.0f} ms | {cells} |", flush=True)


if __name__ == "__main__":
    main()

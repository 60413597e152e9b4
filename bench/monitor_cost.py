"""What a monitor costs: the duration of a training step with TrainerMon over that without, of both tools.

    .venv/bin/python bench/monitor_cost.py [--write] [--rounds N]

Each configuration runs in a process (two with --ranks 2) of its own, which alternates blocks of steps with and without the monitor,
so that both see the same machine. The result is the median of the blocks' ratios. Old tool: .venv-old.
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
CONFIGURATIONS = {
    "every 10 steps": ({**OPTIMIZER, "step_interval": 10}, 10),
    "every step": (OPTIMIZER, 10),
    "every step, activations": ({"xy_distribution": True, "ops": ["norm", "min", "max", "mean"]}, 10),
}
TOOLS = {"msprobe": ".venv", "mindstudio-probe": ".venv-old"}


def measure(name, rounds, out):
    """In the process that trains: durations of blocks without and with the monitor."""
    import torch

    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import step_ratio

    torch.set_num_threads(1)
    config, steps = CONFIGURATIONS[name]
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    from msprobe.pytorch import TrainerMon

    path = os.path.join(out, f"config{os.environ.get('RANK', 0)}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"targets": {}, **config}, file)
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(out, "monitor")

    def trainer(monitored):
        model, loss_of = step_ratio.build("small")
        if ranks > 1:
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        if monitored:
            TrainerMon(path, None, params_have_main_grad=False).set_monitor(model, optimizer)

        def step():
            loss_of(model).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    # The old tool replaces methods of a class of PyTorch when it hooks, so what is bare is timed before it, and again.
    bare, watched = trainer(False), trainer(True)
    for step in (bare, watched):
        for _ in range(3):
            step()
    ratios, durations = [], []
    for number in range(rounds):
        times = {}
        for key, step in (("bare", bare), ("watched", watched))[:: 1 if number % 2 else -1]:
            if ranks > 1:
                torch.distributed.barrier()
            begin = time.process_time() if ranks == 1 else time.perf_counter()
            for _ in range(steps):
                step()
            times[key] = (time.process_time() if ranks == 1 else time.perf_counter()) - begin
        ratios.append(times["watched"] / times["bare"])
        durations.append(times["bare"] / steps)
    if int(os.environ.get("RANK", 0)) == 0:
        print(
            json.dumps(
                {"ratio": statistics.median(ratios), "ratios": sorted(ratios), "step": statistics.median(durations)}
            )
        )


def run(tool, name, ranks, rounds):
    with socket.socket() as free, tempfile.TemporaryDirectory() as out:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [
            os.path.join(ROOT, TOOLS[tool], "bin/python"),
            __file__,
            "--measure",
            name,
            "--rounds",
            str(rounds),
            "--out",
            out,
        ]
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        if ranks == 1:
            where = {"OMP_NUM_THREADS": "1"}
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
    parser.add_argument("--measure")
    parser.add_argument("--out")
    parser.add_argument("--tools", default="msprobe,mindstudio-probe")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--names", default=";".join(CONFIGURATIONS), help="of the configurations, with ; between")
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.rounds, given.out)
        return
    print("| what is monitored | ranks | step without | " + " | ".join(given.tools.split(",")) + " |")
    print("|---|---|---|---|---|")
    for name in given.names.split(";"):
        for ranks in map(int, given.ranks.split(",")):
            found = {tool: run(tool, name, ranks, given.rounds) for tool in given.tools.split(",")}
            step = next(iter(found.values()))["step"]
            cells = " | ".join(f"{one['ratio']:.3f}" for one in found.values())
            print(f"| {name} | {ranks} | {step * 1e3:.0f} ms | {cells} |", flush=True)


if __name__ == "__main__":
    main()

"""Training steps on a CUDA device: with capture and with the monitor over those without, of both tools in one run.

    python bench/device.py --ours DIR --old DIR [--rounds N]

Runs under a Python with torch for CUDA; DIR has the package of each tool (`pip install --target DIR`). Without --old only ours runs.
Prints two tables: capture as bench/step_ratio.py measures it, the device waited for after each step, and the monitor as
bench/monitor_cost.py does, the device waited for once in a block of ten steps.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import monitor_cost

# Model, level, task, summary mode, whether mindstudio-probe is measured, too.
STEPS = (
    ("small", "L0", "statistics", "statistics", True),
    ("small", "mix", "statistics", "statistics", True),
    ("small", "mix", "statistics", "md5", False),
    ("big", "mix", "statistics", "statistics", True),
    ("resnet18", "mix", "statistics", "statistics", False),
)


def step(packages, model, level, task, summary, steps):
    here = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, os.path.join(here, "step_ratio.py"), "--model", model, "--level", level, "--task", task]
    command += ["--summary", summary, "--steps", str(steps), "--device", "cuda"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": packages}, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-1500:], file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--old")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", choices=("capture", "monitor"))
    given = parser.parse_args()
    tools = {"msprobe": given.ours, **({"mindstudio-probe": given.old} if given.old else {})}
    if given.only != "monitor":
        print(
            "| model | what is recorded | step without | "
            + " | ".join(tools)
            + " |\n|---|---|---|"
            + "---|" * len(tools)
        )
        for model, level, task, summary, both in STEPS:
            found = [
                step(packages, model, level, task, summary, 20 if name == "msprobe" else 3)
                if both or name == "msprobe"
                else None
                for name, packages in tools.items()
            ]
            cells = [f"{one['wall_ratio']:.2f}, off {one['idle_ratio']:.3f}" if one else "-" for one in found]
            bare = f"{found[0]['base_ms']:.1f} ms" if found[0] else "-"
            what = f"{level}, {task}" + (", md5" if summary == "md5" else "")
            print(f"| {model} | {what} | {bare} | " + " | ".join(cells) + " |", flush=True)
    if given.only != "capture":
        monitor_cost.TOOLS = {name: (sys.executable, packages) for name, packages in tools.items()}
        print("| what is monitored | step without | " + " | ".join(tools) + " |\n|---|---|" + "---|" * len(tools))
        with tempfile.TemporaryDirectory() as directory:
            for name in monitor_cost.CONFIGURATIONS:
                found = []
                for tool in tools if name not in ("laws", "health") else ("msprobe",):
                    try:
                        found.append(monitor_cost.run(tool, name, 1, given.rounds, 1, "cuda", directory))
                    except (StopIteration, IndexError):  # it printed no result
                        found.append(None)
                cells = [f"{one['ratio']:.3f}" if one else "-" for one in found] + ["-"] * (len(tools) - len(found))
                bare = f"{found[0]['step'] * 1e3:.1f} ms" if found[0] else "-"
                print(f"| {name} | {bare} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

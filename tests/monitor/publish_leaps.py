"""Judges made losses and short trainings, healthy ones and ones that leap: what docs/{en,zh}/monitor/judge.md says of them.

.venv/bin/python tests/monitor/publish_leaps.py DIRECTORY [--made 960] [--tool .venv/bin/msprobe]

Runs are kept in DIRECTORY, so that rules can change without training again.
"""

import argparse
import collections
import json
import multiprocessing
import os
import subprocess
import sys

import loss_runs
import loss_shapes
import torch

NEAR = 3  # steps from the fault that are right


def judged(tool, directory, losses=None):
    """The exit code, and the events of the answer."""
    command = [tool, "monitor", "judge", directory, "--json"]
    if losses is not None:
        path = os.path.join(directory, "made.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("step,loss\n" + "".join(f"{i},{float(v)!r}\n" for i, v in enumerate(losses)))
        command += ["--loss", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 5):
        raise SystemExit(done.stderr or done.stdout)
    return done.returncode, json.loads(done.stdout)["events"]


def quiet_run(directory, steps):
    """A monitored run of a training that does nothing, for losses that are made."""
    place = os.path.join(directory, f"quiet_{steps}")
    if os.path.exists(os.path.join(place, "monitor.json")):
        return place
    os.makedirs(place)
    os.environ["MONITOR_OUTPUT_DIR"] = place
    from msprobe.pytorch import TrainerMon

    torch.manual_seed(0)
    with open(os.path.join(place, "monitor.json"), "w", encoding="utf-8") as file:
        json.dump({"targets": {}, "wg_distribution": True, "ops": ["norm"], "format": "api"}, file)
    model = torch.nn.Linear(4, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    monitor = TrainerMon(os.path.join(place, "monitor.json"), params_have_main_grad=False)
    monitor.set_monitor(model, optimizer)
    for _ in range(steps):
        torch.nn.functional.mse_loss(model(torch.randn(64, 4)), torch.randn(64, 2)).backward()
        optimizer.step()
        optimizer.zero_grad()
    monitor.close()
    return place


def answer(code, events, at):
    """One word for an answer to a fault."""
    if not events:
        return f"no finding, exit code {code}"
    return "right step" if abs(events[0]["onset"] - at) <= NEAR else "another step"


def of_loss(events):
    return [e for e in events if e["table"] == "loss" or e["loss_step"] is not None]


def judge_made(tool, directory, count):
    """Prints the false alarms on healthy losses, and what is said of leaps."""
    false = collections.Counter()
    for seed in range(count):
        shape, losses = loss_shapes.healthy(seed)
        code, events = judged(tool, quiet_run(directory, len(losses)), losses)
        if of_loss(events) or code == 5:
            false[shape if of_loss(events) else "not decided"] += 1
            print(f"  {seed} {shape}: {[e['text'] for e in of_loss(events)] or 'not decided'}")
    print(f"made healthy losses with an alarm: {sum(false.values())} of {count} {dict(false)}")
    told = collections.Counter()
    for seed in range(240):
        times, at, losses = loss_shapes.leaping(seed)
        code, events = judged(tool, quiet_run(directory, len(losses)), losses)
        told["16 times and more" if times >= 16 else "3 and 6 times", at, answer(code, of_loss(events), at)] += 1
    for key in sorted(told):
        print("made leaps:", *key, told[key])


def make(job):
    case, place = job
    if not os.path.exists(os.path.join(place, "loss.csv")):
        loss_runs.train(case, place)


def judge_trainings(tool, directory):
    """Prints what is said of each training."""
    cases = loss_runs.healthy_cases() + loss_runs.fault_cases()
    jobs = [(case, os.path.join(directory, case["name"])) for case in cases]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=4) as pool:
        pool.map(make, jobs)
    totals = collections.Counter()
    for case, place in jobs:
        code, events = judged(tool, place)
        word = answer(code, events, case["at"]) if case["fault"] else f"exit code {code}"
        leap = loss_runs.times_of(place, case) if case["fault"] else 1
        kind = (
            "healthy"
            if not case["fault"]
            else "fault, loss twice and more"
            if not leap < 2
            else "fault, loss less than twice"
        )
        totals[kind, word] += 1
        print(f"  {case['name']:42s} loss x{leap:.3g}: {word}; {events[0]['text'] if events else ''}")
    for key in sorted(totals):
        print("trainings:", *key, totals[key])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--made", type=int, default=960)
    parser.add_argument("--tool", default=os.path.join(os.path.dirname(sys.executable), "msprobe"))
    given = parser.parse_args()
    judge_made(given.tool, given.directory, given.made)
    judge_trainings(given.tool, given.directory)

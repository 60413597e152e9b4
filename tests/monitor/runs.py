"""Makes the runs of a split, those that are not there yet: python runs.py SPLIT DIRECTORY [HEALTHY] [JOBS]."""

import multiprocessing
import os
import shutil
import sys

import cases
import train


def make(job):
    """One run, in a process of its own; what was interrupted is made again."""
    case, directory = job
    done = os.path.join(directory, case["name"])
    if os.path.exists(os.path.join(done, "loss.csv")):
        return case["name"]
    shutil.rmtree(done, ignore_errors=True)
    train.run(case, done)
    return case["name"]


def make_all(jobs, directory, workers):
    """All of them, so many at a time."""
    os.makedirs(directory, exist_ok=True)
    context = multiprocessing.get_context("fork")
    waiting = list(jobs)
    running = []
    while waiting or running:
        while waiting and len(running) < workers:
            process = context.Process(target=make, args=((waiting.pop(0), directory),))
            process.start()
            running.append(process)
        running[0].join(0.2)
        running = [p for p in running if p.is_alive()]


if __name__ == "__main__":
    split, where = sys.argv[1], sys.argv[2]
    healthy = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    wanted = cases.fault_cases(split) if split != "calibration" else []
    make_all(
        [*wanted, *[cases.twin_of(c) for c in wanted], *cases.healthy_cases(split, healthy)],
        where,
        int(sys.argv[4]) if len(sys.argv) > 4 else 2,
    )

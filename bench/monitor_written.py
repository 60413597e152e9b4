"""A long run of the monitor's files: steps x series written, and what memory and time that takes.

    .venv/bin/python bench/monitor_written.py [--steps 100000] [--series 2000] [--csv] [--directory DIR]

Each series is a small tensor that is read in each step, with one statistic. It prints one line of a table.
"""

import argparse
import os
import tempfile
import time

import torch
from msprobe import _core
from msprobe.pytorch import recorder


def resident():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--csv", action="store_true", help="csv files of 1,000 steps, too")
    parser.add_argument("--directory")
    given = parser.parse_args()
    recorder.init()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=given.directory) as out:
        journal = _core.MonitorJournal(out, 1e-8, 6, 1000, given.csv, False, [])
        table = journal.add_table("grad_reduced", ["norm", "shape", "dtype"], False, True)
        numbers = [journal.add_series(table, 0, f"layers.{i}.weight", -1, 0, f"t{i}") for i in range(given.series)]
        tensors = [torch.randn(16) for _ in numbers]
        begin = time.process_time()
        after_first = 0.0
        for step in range(given.steps):
            journal.take(numbers, tensors, 1)
            error = journal.write(step)["error"]
            if error:
                raise SystemExit(error)
            if step == given.steps // 100:
                after_first = resident()
        seconds = time.process_time() - begin
        size = sum(entry.stat().st_size for entry in os.scandir(out))
        growth = resident() - after_first
        print("| steps | series | csv | files | memory | growth after 1 % of the steps | time of a step |")
        print("|---|---|---|---|---|---|---|")
        print(
            f"| {given.steps:,} | {given.series:,} | {'yes' if given.csv else 'no'} | {size / 1e9:.2f} GB | {resident():.0f} MB "
            f"| {growth:.1f} MB | {seconds / given.steps * 1e3:.2f} ms |"
        )


if __name__ == "__main__":
    main()

"""Kernel dumps of MindSpore: what comparing many files costs, beside what reading the same bytes costs.

    python bench/kernels.py --work /tmp/kernels                       # 100,000 small files a side
    python bench/kernels.py --work /tmp/large --files 512 --elements 1048576

Prints a line for a cold and a warm cache: seconds and MB/s of `cat` of all files, those of `msprobe compare`, the share
of the two, and the memory that was held. Dropping the cache needs root; without it there is no cold line.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy

STEP = Path("rank_0/Net/0/0")
DROP = Path("/proc/sys/vm/drop_caches")


def write_side(root: Path, files: int, elements: int, shift: float) -> None:
    """Writes the files of one step, three a kernel, in MindSpore's layout and names."""
    directory = root / STEP
    directory.mkdir(parents=True)
    values = numpy.random.default_rng(7).standard_normal(elements, dtype=numpy.float32)
    for number in range(files):
        kernel, slot = divmod(number, 3)
        item = f"input.{slot}" if slot < 2 else "output.0"
        changed = values + numpy.float32(shift if number % 100 == 0 else 0) + numpy.float32(number % 13)
        stamp = 1_795_397_600_000_000 + kernel
        name = f"MatMul.Default_network-Net_layer{kernel}-Dense_MatMul-op{kernel}.0.0.{stamp}.{item}.DefaultFormat.Float32.npy"
        numpy.save(directory / name, changed)


def measure(command: list, cold: bool) -> tuple:
    """Seconds and the most memory in MB of a command."""
    if cold:
        os.sync()
        DROP.write_text("3\n")
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    if status != 0:
        sys.exit(f"{command[0]} failed: {status}")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="directory for the files; kept")
    parser.add_argument("--files", type=int, default=100_000, help="of a side")
    parser.add_argument("--elements", type=int, default=256, help="of a file, float32")
    parser.add_argument("--command", default="msprobe")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    sides = [args.work / "target", args.work / "golden"]
    for side, shift in zip(sides, (0.5, 0.0)):
        if not (side / STEP).is_dir():
            write_side(side, args.files, args.elements, shift)
    size = sum(entry.stat().st_size for side in sides for entry in os.scandir(side / STEP)) / 1e6
    out = args.work / "out"
    read = ["sh", "-c", 'for side; do find "$side" -type f -print0 | xargs -0 cat; done', "sh", *map(str, sides)]
    compare = [args.command, "compare", "-tp", sides[0], "-gp", sides[1], "-o", out, "--rank", "0", "--step", "0"]
    compare = list(map(str, compare))
    if subprocess.run([args.command, "-h"], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"{args.command} does not run: give --command")
    for cold in (True, False) if os.access(DROP, os.W_OK) else (False,):
        best = {}
        for what, command in (("cat", read), ("compare", compare)) * args.repeat:
            shutil.rmtree(out, ignore_errors=True)
            best[what] = min(best.get(what, (1e9, 0)), measure(command, cold))
        line = {"cache": "cold" if cold else "warm", "files": 2 * args.files, "MB": round(size)}
        for what, (seconds, memory) in best.items():
            line.update({f"{what}_s": round(seconds, 2), f"{what}_MB/s": round(size / seconds)})
            line[f"{what}_memory_MB"] = round(memory)
        line["share"] = round(best["cat"][0] / best["compare"][0], 2)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

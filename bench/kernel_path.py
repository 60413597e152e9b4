"""What the process pays for a tensor whose statistics a kernel of a device computes; no device is needed.

    python bench/kernel_path.py [--calls N] [--rounds N]

Tensors of host memory are sent that way, and tests/device/stand_in_driver.cc stands in for the driver; its launches compute
nothing (STAND_IN_FAULTS=idle_after_check), so that what is left is the work of the host. Prints microseconds of the
training's thread for each tensor of calls with 1, 3 and 12 tensors of 64 elements: what such a call takes beyond one with
numbers in their places, so all that is done for a tensor while the training waits, and in brackets with stop(), which takes
what has come and flushes the files. Processor time; the median of rounds. A launch of a real driver takes some microseconds
of its own, once for a call.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import json, sys, time, types, torch
torch.set_num_threads(1)
from msprobe.pytorch import PrecisionDebugger
zoo = types.ModuleType("zoo")
zoo.op = lambda *tensors: None
sys.modules["zoo"] = zoo
debugger = PrecisionDebugger(config_path=sys.argv[1])
debugger.register_custom_api(zoo, "op")
count, calls, numbers = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "numbers"
tensors = [0.5 if numbers else torch.randn(64) for _ in range(count)]
debugger.start()
for _ in range(50):
    zoo.op(*tensors)
begin = time.thread_time()
for _ in range(calls):
    zoo.op(*tensors)
called = time.thread_time()
debugger.stop()
print(json.dumps([(end - begin) / calls for end in (called, time.thread_time())]))
debugger.step()
"""


def compiled(directory):
    """The stand-in, as the library that a framework would have loaded."""
    library = Path(directory) / "libcuda.so.1"
    flags = [
        "-std=c++20",
        "-O3",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        f"-I{ROOT / 'src'}",
    ]
    source = ROOT / "tests" / "device" / "stand_in_driver.cc"
    subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
    return library


def seconds(directory, what, env, tensors, calls):
    """Of a call, and of a call with its share of stop()."""
    config = Path(directory) / "config.json"
    section = {"scope": [], "list": [], "data_mode": ["all"]}
    keys = {"task": "statistics", "level": "L1", "dump_path": f"{directory}/dump", "statistics": section}
    config.write_text(json.dumps(keys), encoding="utf-8")
    command = [sys.executable, "-c", SCRIPT, str(config), str(tensors), str(calls), what]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        forced = {"MSPROBE_FORCE_DEVICE_PATH": "1"}
        stand_in = {"LD_PRELOAD": str(compiled(directory)), "STAND_IN_FAULTS": "idle_after_check"}
        ways = {
            "kernel": {**forced, **stand_in, "MSPROBE_DEVICE_KERNEL": "host"},
            "PyTorch's kernels": forced,
            "host memory": {},
        }
        print("| tensors of a call | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
        for tensors in (1, 3, 12):
            found = {name: [] for name in ways}
            for _ in range(given.rounds):
                bare = seconds(directory, "numbers", {}, tensors, given.calls)
                for name, env in ways.items():
                    taken = seconds(directory, "tensors", env, tensors, given.calls)
                    found[name].append([(own - other) / tensors * 1e6 for own, other in zip(taken, bare)])
            medians = [[statistics.median(column) for column in zip(*values)] for values in found.values()]
            cells = [f"{called:.2f} ({stopped:.2f})" for called, stopped in medians]
            print(f"| {tensors} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

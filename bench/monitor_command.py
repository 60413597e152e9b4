"""What `msprobe monitor -- python train.py` costs: the duration of a training step under it over that of the script alone.

    .venv/bin/python bench/monitor_command.py [--pairs N]

The script, of which no line is changed, runs alone and under the command in turn, each time in a process of its own; the ratio is
that of the median steps of two processes that follow each other, in processor time of the process, the result the median of all
pairs. Two processes differ by some percent of a step, by where their memory lies: bench/monitor_cost.py tells what the monitor
itself costs more exactly; this one shows what finding the model, its optimizer and the steps adds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = 60
SCRIPT = f"""
import statistics, sys, time
sys.path.insert(0, {os.path.join(ROOT, "bench")!r})
import step_ratio, torch
torch.set_num_threads(1)
model, loss_of = step_ratio.build("small", "cpu")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times = []
for _ in range({STEPS}):
    begin = time.process_time()
    loss_of(model).backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.process_time() - begin)
print(statistics.median(times[5:]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "train.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        train = [sys.executable, script]
        monitor = [os.path.join(os.path.dirname(sys.executable), "msprobe"), "monitor", "--output", directory, "--"]

        def step(command):
            env = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, cwd=directory, env=env, check=True)
            return float(done.stdout.splitlines()[-1])

        alone, ratios = [step(train)], []
        for _ in range(given.pairs):
            watched = step([*monitor, *train])
            alone.append(step(train))
            ratios.append(watched / ((alone[-2] + alone[-1]) / 2))
    ratios.sort()
    quarter = len(ratios) // 4
    print(f"step alone {statistics.median(alone) * 1e3:.0f} ms; under msprobe monitor, every step, times ", end="")
    print(f"{statistics.median(ratios):.3f} ({ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f})")


if __name__ == "__main__":
    main()

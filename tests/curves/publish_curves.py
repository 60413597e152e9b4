"""Measures the golden band: how many fresh runs of the same training it covers, and which small changes it flags.

    .venv/bin/python tests/curves/publish_curves.py [--seeds 10] [--steps 50] [--out out/curves]

Prints the table of docs/en/checks/curves.md.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from small_training import train

MSPROBE = Path(sys.executable).parent / "msprobe"


def curves(a, b, golden):
    """The result of the command for a run against a band of `golden`, of which `a` is the first."""
    command = [MSPROBE, "curves", a, b, *golden[1:], "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def band_of(result):
    return next(c for c in result["curves"] if c["quantity"] == "loss")["golden_band"]


def measure(folder, seed, steps, bf16, fresh):
    """Rows: (number of golden runs, what B is, whether it left the band, at which step, verdict)."""
    order = 1000 * seed
    golden = [folder / f"golden{i}.log" for i in range(5)]
    for i, path in enumerate(golden):
        train(path, seed, order + i, steps, bf16=bf16)
    others = {f"fresh{i}": {} for i in range(fresh)}
    others |= {"lr": {"lr": 1.01e-3}, "beta2": {"beta2": 0.95}}
    for k, (name, change) in enumerate(others.items()):
        path = folder / f"{name}.log"
        train(path, seed, order + 100 + k, steps, bf16=bf16, **change)
        for runs in (2, 3, 4, 5):
            result = curves(golden[0], path, golden[:runs])
            band = band_of(result)
            yield runs, name.rstrip("0123456789") if name.startswith("fresh") else name, band, result["verdict"]


def row(results, runs):
    """Counts of one kind of run."""

    def left(kind):
        steps = [band["first_outside"] for n, k, band, _ in results if n == runs and k == kind]
        return sum(s is not None for s in steps), len(steps), sorted(s for s in steps if s is not None)

    fresh, all_fresh, _ = left("fresh")
    lr, all_lr, at_lr = left("lr")
    beta2, all_beta2, at_beta2 = left("beta2")
    one_sided = sum(v == "one_sided" for n, k, _, v in results if n == runs and k == "fresh")
    middle = [str(at[len(at) // 2]) if at else "-" for at in (at_lr, at_beta2)]
    return (
        f"{all_fresh - fresh} of {all_fresh} | {one_sided} | {lr} of {all_lr} (step {middle[0]}) | "
        f"{beta2} of {all_beta2} (step {middle[1]})"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--fresh", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/curves"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("| precision | runs of A | fresh runs inside | called one-sided | 1 % of the learning rate | beta2 0.95 |")
    print("|---|---|---|---|---|---|")
    for bf16 in (False, True):
        results = []
        for seed in range(args.seeds):
            folder = args.out / f"{'bf16' if bf16 else 'fp32'}_{seed}"
            os.makedirs(folder, exist_ok=True)
            results += measure(folder, seed, args.steps, bf16, args.fresh)
        for runs in (2, 3, 4, 5):
            print(f"| {'bf16 autocast' if bf16 else 'float32'} | {runs} | {row(results, runs)} |", flush=True)


if __name__ == "__main__":
    main()

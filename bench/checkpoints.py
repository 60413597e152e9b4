"""Checkpoints: what comparing two of them costs, beside what reading the same bytes costs; mindstudio-probe on its own case.

    python bench/checkpoints.py --work /tmp/checkpoints                # 2 x 4 GB of safetensors, 2 x 0.5 GB of Megatron

Prints a line for a cold and a warm cache: seconds of the fastest way to read all files (1, 2 or 4 readers), those of
`msprobe ckpt compare`, the share of the two and the peak memory. mindstudio-probe runs from .venv-old, if that is there,
on Megatron's checkpoints, the only ones that it reads.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from measure import OLD, command_of, evict, measured, read_all
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import checkpoint_savers

TENSOR = 64 << 20  # bytes; 4096 x 4096 elements of float32 in each


def write_safetensors(directory: Path, gigabytes: float, changed: bool) -> None:
    """Files of 1 GB. The other side differs in an element of every eighth tensor."""
    directory.mkdir(parents=True)
    values = torch.randn(TENSOR // 4, generator=torch.Generator().manual_seed(0)).view(4096, -1)
    count = int(gigabytes * 2**30 / TENSOR)
    for first in range(0, count, 16):
        tensors = {f"layers.{n}.weight": values + n for n in range(first, min(first + 16, count))}
        if changed:
            for n in range(first, min(first + 16, count), 8):
                tensors[f"layers.{n}.weight"][n % 4096, 5] += 1e-3
        save_file(tensors, directory / f"model-{first // 16:05d}.safetensors")


def write_megatron(directory: Path, seed: int) -> None:
    """A LLaMA of TP 2 x PP 2, hidden 1024, 8 layers: 0.5 GB in float32."""
    sizes = {"HEADS": 16, "GROUPS": 8, "HEAD": 64, "HIDDEN": 1024, "FFN": 2816, "LAYERS": 8, "VOCAB": 32000}
    for name, value in sizes.items():
        setattr(checkpoint_savers, name, value)
    state = checkpoint_savers.llama()
    rng = torch.Generator().manual_seed(seed)
    checkpoint_savers.save_megatron(
        {n: t + 1e-4 * seed * torch.randn(t.shape, generator=rng) for n, t in state.items()}, directory, padded=32000
    )


def bench_reading(sides: list, command: str, repeat: int, what: str) -> None:
    size = sum(p.stat().st_size for side in sides for p in side.rglob("*") if p.is_file()) / 1e6

    def forget(cold: bool) -> None:
        for side in sides if cold else ():
            evict(side)

    for cold in (True, False):
        read, ours, peak = [], [], 0
        for _ in range(repeat):
            for readers in (1, 2, 4):
                forget(cold)
                read.append(read_all(sides, readers))
            forget(cold)
            # Exit code 1: weights differ, which they do.
            run = measured(["sh", "-c", '"$0" "$@"; test $? -le 1', command, "ckpt", "compare", *sides])
            ours.append(run["seconds"])
            peak = max(peak, run["peak_mb"])
        fastest = min(read)
        line = {"what": what, "cache": "cold" if cold else "warm", "MB": round(size), "read_s": round(fastest, 2)}
        line.update({"read_MB/s": round(size / fastest), "compare_s": round(min(ours), 2)})
        line.update({"compare_MB/s": round(size / min(ours)), "share": round(fastest / min(ours), 2)})
        print(json.dumps({**line, "peak_MB": round(peak)}), flush=True)


def bench_old(sides: list, work: Path) -> None:
    stub = work / "stub"
    (stub / "megatron").mkdir(parents=True, exist_ok=True)
    (stub / "megatron" / "__init__.py").write_text("")
    out = work / "similarity.json"
    for name in ("ours", "old"):
        if name == "old" and not OLD.is_dir():
            continue
        out.unlink(missing_ok=True)
        command = [command_of(name), "config_check", "-c", *sides, "-o", out]
        run = measured(["env", f"PYTHONPATH={stub}", *command] if name == "old" else command)
        print(
            json.dumps(
                {
                    "what": "config_check -c",
                    "tool": name,
                    "s": round(run["seconds"], 2),
                    "peak_MB": round(run["peak_mb"]),
                }
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="directory for the files; kept")
    parser.add_argument("--gigabytes", type=float, default=4, help="of a side")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    command = command_of("ours")
    if subprocess.run([command, "-h"], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"{command} does not run: set MSPROBE_BIN")
    large = [args.work / "large_a", args.work / "large_b"]
    megatron = [args.work / "megatron_a", args.work / "megatron_b"]
    for number, (big, small) in enumerate(zip(large, megatron)):
        if not big.is_dir():
            write_safetensors(big, args.gigabytes, number == 1)
        if not small.is_dir():
            write_megatron(small, number)
    bench_reading(large, command, args.repeat, "safetensors")
    bench_reading(megatron, command, args.repeat, "Megatron TP 2 PP 2")
    bench_old(megatron, args.work)


if __name__ == "__main__":
    main()

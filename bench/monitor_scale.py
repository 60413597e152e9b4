"""Makes the output directory of a monitored run of any size, to measure the page on it.

python bench/monitor_scale.py OUT --ranks 1024 --series 1000 --steps 10000

Ranks beyond --distinct are hard links to the files of the others: 1,024 ranks would take 82 GB.
"""

import argparse
import os
import struct
import sys
import zlib

import numpy as np

MAGIC = b"MSPSER01"
SESSION, TABLE, SERIES, VALUES = 1, 2, 3, 4
SAME_ROWS = 1
PARTS = (
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
)


def block(kind: int, payload: bytes) -> bytes:
    """A block of monitor.series (src/monitor/series_format.h)."""
    head = struct.pack("<4I", kind, len(payload), zlib.crc32(payload), 0)
    return head + payload + bytes(-len(payload) % 8)


def names_of(count: int) -> list:
    """Names of so many parameters of a LLaMA."""
    names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]
    layer = 0
    while len(names) < count:
        names += [f"model.layers.{layer}.{part}" for part in PARTS]
        layer += 1
    return sorted(names[:count])


def write_series(path: str, rank: int, series: int, steps: int, stats: list, interval: int) -> None:
    """Gradient norms that fall slowly, with noise, a spike and, on rank 1, a layer that becomes NaN."""
    rng = np.random.default_rng(rank)
    names = names_of(series)
    table = (
        f'{{"name":"grad_reduced","columns":[{",".join(f"{chr(34)}{s}{chr(34)}" for s in stats)}],"micro_steps":false}}'
    )
    items = ",".join(f'[0,0,"{name}",-1]' for name in names)
    level = np.exp(rng.normal(-3, 1, series))
    spike = steps * 6 // 10
    broken = [i for i, name in enumerate(names) if ".layers.7." in name]
    with open(path, "wb") as file:
        file.write(
            MAGIC
            + block(SESSION, b"")
            + block(TABLE, table.encode())
            + block(SERIES, f'{{"items":[{items}]}}'.encode())
        )
        for step in range(steps):
            values = level * np.exp(rng.normal(0, 0.1, series)) * (0.3 + 1 / (1 + step / (steps / 5)))
            if spike <= step < spike + max(3, steps // 500):
                values *= 8
            if rank == 1 and step >= steps * 8 // 10:
                values[broken] = np.nan
            columns = [values if stat == "norm" else values / (3 + k) for k, stat in enumerate(stats)]
            head = struct.pack("<q4I", step * interval, 0, series, len(stats), SAME_ROWS if step else 0)
            rows = b"" if step else np.arange(series, dtype="<u4").tobytes() + bytes(-4 * series % 8)
            file.write(block(VALUES, head + rows + np.concatenate(columns).astype("<f8").tobytes()))


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--interval", type=int, default=1)
    parser.add_argument("--distinct", type=int, default=8, help="ranks with files of their own")
    parser.add_argument("--stats", nargs="+", default=["norm"])
    args = parser.parse_args()
    os.makedirs(args.out)
    made = []
    for rank in range(args.ranks):
        directory = os.path.join(args.out, f"Nov25_18-24-11-rank{rank}-{rank:08x}")
        os.mkdir(directory)
        path = os.path.join(directory, "monitor.series")
        if rank < args.distinct:
            write_series(path, rank, args.series, args.steps, args.stats, args.interval)
            made.append(path)
        else:
            os.link(made[rank % len(made)], path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Pairs of tensors, and what the benchmark standard of mindstudio-probe 8.1.1 says of each.

usage: ptdbg_pairs.py FILE      (under mindstudio-probe 8.1.1: writes ptdbg_figures.json)
"""

import json
import sys

import numpy as np
import torch

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COUNT = 400
# What its messages are about.
KINDS = {"标杆结果": "reference", "NPU": "result", "shape": "shapes"}


def pairs():
    """(result, reference), from the bits of numpy's generator, which are the same in every release."""
    random = np.random.Generator(np.random.PCG64(8))
    for number in range(COUNT):
        dtype = DTYPES[number % 4]
        size = int(random.integers(1, 40))
        scale = 10.0 ** float(random.integers(-3, 4))
        truth = torch.from_numpy((random.random(size) - 0.5) * scale)
        if number % 11 == 0:
            truth = truth.round()
        wide = torch.float64 if number % 3 == 0 else torch.float32 if dtype != torch.float64 else torch.float64
        truth = truth.to(wide)
        error = torch.from_numpy((random.random(size) - 0.3) * 10.0 ** -float(random.integers(1, 9)))
        ours = (truth.double() * (1 + error) if number % 2 else truth.double() + error).to(dtype)
        if number % 13 == 0:
            ours = truth.to(dtype)
        if number % 17 == 0:
            truth[0] = (float("nan"), float("inf"))[number % 2]
        if number % 19 == 0:
            ours[-1] = (float("nan"), float("-inf"))[number % 2]
        if number % 23 == 0:
            ours = ours[:-1]
        if number % 29 == 0:
            ours, truth = ours[:0], truth[:0]
        if number % 7 == 0:
            kind = (torch.int32, torch.int64, torch.bool, torch.uint8)[number % 4]
            ours, truth = ours.nan_to_num().abs().to(kind), truth.nan_to_num().abs().to(kind)
        yield ours, truth


def main():
    from msprobe.pytorch.online_dispatch.single_compare import single_benchmark_compare

    rows = []
    for ours, truth in pairs():
        *figures, passes, message = single_benchmark_compare(ours, truth)[1][3:]
        rows.append(
            [*figures, bool(passes), next((kind for word, kind in KINDS.items() if word in (message or "")), None)]
        )
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()

"""Tables of mindstudio-probe 26.2: accuracy checks on two devices, made up of generated pairs, and their comparison.

usage: python old_tables.py DIRECTORY FUNCTIONS

DIRECTORY gets npu/ and gpu/ with accuracy_checking_{result,details}_*.csv and old/ with api_precision_compare_{result,details}_*.csv.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from msprobe.pytorch.api_accuracy_checker.acc_check.acc_check_utils import UtDataInfo
from msprobe.pytorch.api_accuracy_checker.compare import api_precision_compare
from msprobe.pytorch.api_accuracy_checker.compare.compare import Comparator

NAMES = ("softmax", "mul", "matmul", "layer_norm", "topk", "linalg.inv", "embedding", "sum", "conv2d", "abs")
TIME = "20260101000000"


def floats(rng, dtype, n, error, special):
    """A bench and a device tensor, apart by `error`, relative."""
    bench = torch.from_numpy(rng.standard_normal(n) * 10.0 ** rng.integers(-7, 4))
    device = (bench * (1 + error * torch.from_numpy(rng.standard_normal(n)))).to(dtype)
    bench = bench.to(torch.float64 if dtype in (torch.float32, torch.float64) else torch.float32)
    if special == 1:
        device[0] = torch.nan
    elif special == 2:
        device[0], bench[0] = torch.inf, torch.inf
    elif special == 3:
        device[0] = -torch.inf
    elif special == 4:
        bench, device = bench * 0, device * 0
    return bench, device


def output(rng, side, seed):
    """What the checker would have got: the same bench for both devices, errors of their own."""
    kind = rng.integers(0, 12)
    n = int(rng.integers(1, 60))
    if kind == 0:
        bench = torch.from_numpy(rng.integers(0, 9, n))
        return bench, bench + int(side == 0 and rng.integers(0, 2))
    if kind == 1:
        return None, None
    if kind == 2:
        return 3, 3 + int(side == 0 and rng.integers(0, 2))
    dtype = (torch.float16, torch.bfloat16, torch.float32, torch.float32, torch.float64)[rng.integers(0, 5)]
    special = int(rng.integers(0, 16))
    size = 10.0 ** rng.integers(-7, -1)
    own = np.random.default_rng([seed, side])
    scale = size * (1 if side else own.choice([0.5, 1, 3, 12]))
    special = special if side == 0 or special in (2, 4) or own.integers(0, 2) else 0
    return floats(np.random.default_rng(seed), dtype, n, scale, special)


def check(folder, side, functions):
    folder.mkdir(parents=True)
    paths = [str(folder / f"accuracy_checking_{what}_{TIME}.csv") for what in ("result", "details")]
    comparator = Comparator(*paths, False)
    for number in range(functions):
        rng = np.random.default_rng(number)
        name = f"Torch.{NAMES[rng.integers(0, len(NAMES))]}.{number}"
        outputs = [output(rng, side, 1000 * number + i) for i in range(int(rng.integers(1, 3)))]
        grads = [output(rng, side, 1000 * number + 500 + i) for i in range(int(rng.integers(0, 3)))]
        forward = [list(part) for part in zip(*outputs)]
        backward = [list(part) for part in zip(*grads)] or [[], []]
        message = "This API does not support backward ut, skip backward." if number % 17 == 0 else ""
        # Only float8 inputs make the absolute standard, and then every row has its columns.
        comparator.compare_output(
            name,
            UtDataInfo(backward[0], backward[1], forward[1], forward[0], None, [], message, is_fp8=number % 9 == 0),
        )
    return paths[1]


def main():
    root, functions = Path(sys.argv[1]), int(sys.argv[2])
    np.seterr(all="ignore")
    npu, gpu = (check(root / side, i, functions) for i, side in enumerate(("npu", "gpu")))
    (root / "old").mkdir()
    out = [str(root / "old" / f"api_precision_compare_{what}_{TIME}.csv") for what in ("result", "details")]
    api_precision_compare.api_precision_compare(api_precision_compare.CompareConfig(npu, gpu, *out))


if __name__ == "__main__":
    main()

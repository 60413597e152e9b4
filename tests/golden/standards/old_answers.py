"""What the comparison classes of mindstudio-probe say of generated pairs of tensors; runs in an environment that has them.

usage: python old_answers.py FIRST COUNT >answers.txt

A line is CASE|WHAT|STATUS|CELLS: WHAT is `check` (the accuracy check with its standard of this release) or the name of a
standard, CELLS are the 17 columns between shape and status, separated by ';'. standards_test.cc makes the same pairs.
"""

import os
import sys
import warnings

import numpy as np
import torch
from msprobe.core.common.const import CompareConst
from msprobe.pytorch.api_accuracy_checker.compare.algorithm import (
    get_abs_bench_with_eps,
    get_abs_err,
    get_rel_err_origin,
)
from msprobe.pytorch.api_accuracy_checker.compare.compare import Comparator
from msprobe.pytorch.api_accuracy_checker.compare.compare_column import CompareColumn
from msprobe.pytorch.api_accuracy_checker.compare.compare_input import CompareInput

SIZES = (1, 2, 5, 7, 8, 9, 31, 100, 128, 129, 300, 1025)
NAMES = ("softmax", "mul", "abs", "matmul", "conv2d", "layer_norm")
STANDARDS = {
    "benchmark": CompareConst.BENCHMARK,
    "absolute": CompareConst.ABSOLUTE_THRESHOLD,
    "binary": CompareConst.BINARY_CONSISTENCY,
    "ulp": CompareConst.ULP_COMPARE,
    "thousandth": CompareConst.THOUSANDTH_STANDARD,
    "accumulative": CompareConst.ACCUMULATIVE_ERROR_COMPARE,
}
OF_CASE = 0xFFFFF


def drawn(case, elements, draw):
    """splitmix64 of case, element and draw."""
    with np.errstate(over="ignore"):
        z = (np.uint64(case) << np.uint64(32)) | (np.asarray(elements, np.uint64) << np.uint64(8)) | np.uint64(draw)
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def below(case, draw, n):
    return int(drawn(case, OF_CASE, draw) % np.uint64(n))


def pair(case):
    """Returns the name of the function, the bench's and the device's tensor."""
    kind = below(case, 0, 3)  # float16, bfloat16, float32
    n = SIZES[below(case, 1, len(SIZES))]
    i = np.arange(n)
    mode = below(case, 2, 10)
    power = (below(case, 3, 20) - 14 if kind == 0 else below(case, 3, 40) - 20) - (
        drawn(case, i, 0) % np.uint64(12)
    ).astype(int)
    if mode == 5:
        power = power - 16
    value = ((drawn(case, i, 1) % np.uint64(1 << 24)).astype(float) - (1 << 23)) * np.exp2(power - 23.0)
    if kind == 2 and below(case, 4, 5):
        value = value + (drawn(case, i, 2) % np.uint64(1 << 20)).astype(float) * np.exp2(power - 50.0)
        bench = value
    else:
        bench = value.astype(np.float32)
    error = ((drawn(case, i, 3) % np.uint64(2049)).astype(float) - 1024) * 2.0 ** -(10 + below(case, 5, 20))
    device = value if below(case, 6, 5) == 0 else value + value * error
    special = drawn(case, i, 4) % np.uint64(8) == 0
    if mode == 0:
        device = np.where(special, np.nan, device)
    elif mode == 1:
        device, bench = np.where(special, np.inf, device), np.where(special, np.inf, bench).astype(bench.dtype)
    elif mode == 2:
        device = np.where(special, -np.inf, device)
    elif mode == 3:
        bench = np.where(special, 0, bench).astype(bench.dtype)
    elif mode == 4:
        device, bench = device * 0, bench * 0
    with np.errstate(over="ignore"):
        if kind == 0:
            device = torch.from_numpy(device.astype(np.float16))
        else:
            device = torch.from_numpy(device.astype(np.float32)).to(torch.bfloat16 if kind == 1 else torch.float32)
    return NAMES[below(case, 7, len(NAMES))], torch.from_numpy(bench), device


def line(case, what, status, column):
    cells = column.to_column_value(status, "")[3:20]
    print(case, what, status, ";".join(f"{c:.14f}" if isinstance(c, float) else str(c) for c in cells), sep="|")


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    comparator = Comparator(os.devnull, os.devnull, True)
    for case in range(first, first + count):
        name, bench, device = pair(case)
        extra = (False,) if hasattr(comparator, "_compare_quantization_tensor") else ()
        status, column, _ = comparator._compare_torch_tensor(name, bench, device, CompareColumn(), *extra)
        line(case, "check", status, column)
        dtype = device.dtype
        if dtype == torch.bfloat16:
            bench, device = bench.to(torch.float32), device.to(torch.float32)
        bench, device = bench.numpy(), device.numpy()
        with_eps = get_abs_bench_with_eps(bench, dtype)[1]
        relative = get_rel_err_origin(get_abs_err(bench, device), with_eps)
        for what, standard in STANDARDS.items():
            column = CompareColumn()
            comparator.registry.comparison_functions[standard](CompareInput(bench, device, column, dtype, relative))
            line(case, what, " ", column)


if __name__ == "__main__":
    main()

"""Measures how far the elementary functions of torch's CPU kernels are from float64, for src/lab/ulp_table.def.

usage: python tools/derive_ulp_table.py [--check]      writes the table; --check draws other values and judges them by the table that is there

float16 and bfloat16 arguments are all of their values; float32 arguments, and pairs, are drawn over all powers of two and from normal
distributions. The truth is torch's float64. A function gets the largest error that was seen, and a margin. One whose small results lose digits (1 +
erf(x) in gelu) gets a second number: errors up to so many roundings of the largest argument count as measured, too. A function that neither
describes is left out, and listed on the terminal.
"""

import argparse
import inspect
import re
import sys
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

TABLE = Path(__file__).resolve().parents[1] / "src" / "lab" / "ulp_table.def"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
UNARY = (
    "acos acosh asin asinh atan atanh cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 "
    "rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt square tan tanh "
    "i0 sgn"
).split()
ACTIVATIONS = (
    "gelu silu mish softplus elu selu celu logsigmoid softsign tanhshrink hardswish hardsigmoid leaky_relu relu6 hardtanh"
).split()
BINARY = "add sub mul div true_divide atan2 hypot pow logaddexp logaddexp2 ldexp xlogy".split()
ALIASES = {
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arctan2": "atan2",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "truediv": "div",
    "expit": "sigmoid",
    "swish": "silu",
    "iadd": "add",
    "isub": "sub",
    "imul": "mul",
    "idiv": "div",
    "itruediv": "div",
}
COUNT = 1 << 18
WIDE, BODY = 24, 4  # ulp: a function that is further away loses digits; what is nearer is no loss
MOST_SHARE = 20
MARGIN, LEAST = 1.25, 0.02
# What the kernels of other devices may need where torch's round nearly correctly; arithmetic is rounded correctly everywhere.
ARITHMETIC = frozenset("add sub mul div true_divide sqrt square sgn hardtanh relu6 leaky_relu ldexp".split())
FREE = {torch.float32: 4.0, torch.float16: 1.0, torch.bfloat16: 1.0}


def function_of(name):
    return getattr(torch, name, None) or getattr(torch.special, name, None) or getattr(functional, name)


def arguments(dtype, count, generator):
    """Values of one argument."""
    if dtype != torch.float32:
        every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
        return every[torch.isfinite(every)]
    bits = torch.randint(-(1 << 31), (1 << 31) - 1, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    normal = torch.randn(count, generator=generator)
    scaled = normal * torch.exp2(torch.randint(-8, 7, (count,), generator=generator).float())
    every = torch.cat([bits.view(torch.float32), normal, scaled])
    return every[torch.isfinite(every)]


def pair(dtype, count, generator):
    """Values of two arguments: of all sizes, and of the same size."""
    wide = [arguments(dtype, count, generator) for _ in range(2)]
    n = min(w.numel() for w in wide)
    wide = [w[torch.randperm(w.numel(), generator=generator)[:n]] for w in wide]
    near = [torch.randn(count, generator=generator).to(dtype) for _ in range(2)]
    return [torch.cat(parts) for parts in zip(wide, near)]


def slope_of(call, x):
    """The gradient of each element."""
    x = x.detach().requires_grad_()
    return torch.autograd.grad(call(x).sum(), x)[0]


def errors_of(name, dtype, backward, generator):
    """(error in ulp, error in roundings of the largest argument; of a gradient, of the one that comes in) of each finite result."""
    call = function_of(name)
    inputs = pair(dtype, COUNT, generator) if name in BINARY else [arguments(dtype, COUNT, generator)]
    made = partial(slope_of, call) if backward else call
    try:
        ours, truth = made(*inputs).double(), made(*(x.double() for x in inputs))
    except (RuntimeError, TypeError):
        return None
    info = torch.finfo(dtype)
    size = truth.abs()
    good = torch.isfinite(ours) & torch.isfinite(truth) & (size < 0.9 * info.max) & (size >= info.smallest_normal)
    ours, truth, size = ours[good], truth[good], size[good]
    if not good.any():
        return None
    largest = torch.ones_like(size) if backward else torch.stack([x.double().abs()[good] for x in inputs]).amax(0)
    apart = (ours - truth).abs()
    ulp = torch.exp2(torch.floor(torch.log2(size))) * info.eps
    return apart / ulp, apart / (largest * info.eps / 2)


def bound_of(name, dtype, backward, seeds):
    """(ulps, share) of a function, None where neither describes it."""
    if backward and name in BINARY:
        return None
    found = [errors_of(name, dtype, backward, torch.Generator().manual_seed(seed)) for seed in seeds]
    if any(part is None for part in found):
        return None
    ulps, shares = (torch.cat(parts) for parts in zip(*found))
    worst = ulps.max().item()
    free = 0.0 if name in ARITHMETIC else FREE[dtype]
    if worst <= WIDE:
        return (max(free, 0.5 + LEAST if worst <= 0.5 + LEAST / 2 else MARGIN * worst), 0.0)
    lost = ulps > BODY
    share = shares[lost].max().item()
    return (MARGIN * BODY, MARGIN * share) if share <= MOST_SHARE else None


def table(backward):
    rows, left = {}, []
    for name in UNARY + ACTIVATIONS + BINARY:
        bounds = [bound_of(name, dtype, backward, (1, 2)) for dtype in DTYPES]
        left += [f"{name} {str(dtype)[6:]}" for dtype, bound in zip(DTYPES, bounds) if bound is None]
        if any(bounds):
            rows[name] = [bound or (0.0, 0.0) for bound in bounds]
    for alias, name in ALIASES.items():
        if name in rows:
            rows[alias] = rows[name]
    return rows, left


def write():
    release = torch.__version__.partition("+")[0]
    lines = [
        f"// Errors of torch's CPU kernels against float64, measured with torch {release} by tools/derive_ulp_table.py.",
        "// MSP_ULP(function, ulp of float32, share of the largest argument, the same of float16, of bfloat16); 0: not measured",
        "// MSP_ULP_BACKWARD: of the gradient, share of the one that comes in",
    ]
    for macro, backward in (("MSP_ULP", False), ("MSP_ULP_BACKWARD", True)):
        rows, left = table(backward)
        for name, bounds in sorted(rows.items()):
            numbers = ", ".join(f"{ulps:.4g}, {share:.3g}" for ulps, share in bounds)
            lines.append(f'{macro}("{name}", {numbers})')
        print(macro, len(rows), "functions;", len(left), "left out:", ", ".join(left))
    TABLE.write_text("\n".join(lines) + "\n")


def check():
    """Judges values of other seeds by the table. Returns the number of functions that are beyond it."""
    beyond = cells = values = outliers = 0
    for line in TABLE.read_text().splitlines():
        match = re.fullmatch(r'MSP_ULP(_BACKWARD)?\("(\w+)", (.*)\)', line)
        if match is None or match[2] in ALIASES:
            continue
        numbers = [float(text) for text in match[3].split(",")]
        for dtype, ulps, share in zip(DTYPES, numbers[::2], numbers[1::2]):
            if ulps == 0:
                continue
            cells += 1
            found = errors_of(match[2], dtype, bool(match[1]), torch.Generator().manual_seed(1000))
            outside = ((found[0] > ulps) & (found[1] > share)).sum().item()
            values, outliers = values + found[0].numel(), outliers + outside
            if outside:
                beyond += 1
                what = f"{outside} of {found[0].numel()} values, {found[0].max().item():.3g} ulp of {ulps}"
                print(match[2], "backward" if match[1] else "forward", dtype, what)
    print(f"{cells} cells, {beyond} with values beyond the table; {outliers} of {values} values")
    return beyond


def main():
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="judge other values by the table")
    if parser.parse_args().check:
        sys.exit(check() > 0)
    write()


if __name__ == "__main__":
    main()

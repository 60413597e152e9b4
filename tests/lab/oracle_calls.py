"""Calls whose cells of the laboratory are also computed by hand (oracle.py).

usage: oracle_calls.py DIRECTORY      records them, tensors and all, into DIRECTORY
"""

import sys
from typing import NamedTuple

import torch
from torch.nn import functional

BATCH, LENGTH, WIDTH, HEADS = 6, 10, 16, 4


class Case(NamedTuple):
    name: str
    api: str  # as the dump calls it
    function: object
    sizes: tuple  # of its tensors
    rows: tuple  # of each tensor the dimension that is the batch, or None
    places: tuple  # of each tensor the dimensions that are the sequence, or (): position by position
    out_place: object  # of the result the dimension of the sequence; None: none, or not by chunks
    causal: bool = False  # only the first chunk can be computed by itself


X = (BATCH, LENGTH, WIDTH)
HEAD = (BATCH, HEADS, LENGTH, WIDTH)
CASES = (
    Case("linear", "linear", functional.linear, (X, (24, WIDTH), (24,)), (0, None, None), ((1,), (), ()), 1),
    Case("matmul", "matmul", torch.matmul, (X, (WIDTH, 40)), (0, None), ((1,), ()), 1),
    Case("bmm", "bmm", torch.bmm, (X, (BATCH, WIDTH, 12)), (0, 0), ((1,), ()), 1),
    Case(
        "causal attention",
        "scaled_dot_product_attention",
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        (HEAD, HEAD, HEAD),
        (0, 0, 0),
        ((2,), (2,), (2,)),
        2,
        True,
    ),
    Case(
        "layer_norm",
        "layer_norm",
        lambda x, w: functional.layer_norm(x, (WIDTH,), w),
        (X, (WIDTH,)),
        (0, None),
        ((1,), ()),
        1,
    ),
    Case("softmax", "softmax", lambda x: torch.softmax(x, -1), (X,), (0,), ((1,),), 1),
    Case("log_softmax", "log_softmax", lambda x: torch.log_softmax(x, -1), (X,), (0,), ((1,),), 1),
    Case("gelu", "gelu", functional.gelu, (X,), (0,), ((1,),), 1),
    Case("tanh", "tanh", torch.tanh, (X,), (0,), ((1,),), 1),
    Case("mul", "mul", torch.mul, (X, X), (0, 0), ((1,), (1,)), 1),
    Case("mean", "mean", lambda x: torch.mean(x, -1), (X,), (0,), ((1,),), 1),
    Case("cumsum", "cumsum", lambda x: torch.cumsum(x, 1), (X,), (0,), ((1,),), 1, True),
    Case("sum over the sequence", "sum", lambda x: torch.sum(x, 1), (X,), (0,), ((1,),), None),
)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def tensors(case, dtype):
    generator = torch.Generator().manual_seed(len(case.name) * 7 + DTYPES.index(dtype))
    return [torch.randn(size, generator=generator).to(dtype) for size in case.sizes]


def main():
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="L1")
    inputs = [(case, tensors(case, dtype)) for dtype in DTYPES for case in CASES]
    debugger.start()
    for case, given in inputs:
        case.function(*given)
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()

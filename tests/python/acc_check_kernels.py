"""Kernels in the place of those of torch: planted defects, and right ones that compute in another way.

From sitecustomize: KERNELS=wrong|more|alike chooses. As a script it writes a tensor dump with a call of each: acc_check_kernels.py FILE
"""

import importlib
import json
import math
import sys
from pathlib import Path

import torch
from torch.nn import functional

TORCH = {name: getattr(torch, name) for name in dir(torch)}
FUNCTIONAL = {name: getattr(functional, name) for name in dir(functional)}
TAKEN = {}  # "Torch.exp": (inputs, wrong, alike)


def call(name, *inputs, alike=None, **settings):
    """Registers a wrong kernel of the function, with a call of it."""

    def register(wrong):
        TAKEN[name] = (inputs, settings, wrong, alike)
        return wrong

    return register


def drawn(*shape, dtype=torch.float32, scale=1.0, shift=0.0):
    generator = torch.Generator().manual_seed(math.prod(shape))
    return (torch.randn(shape, generator=generator) * scale + shift).to(dtype)


class MeanOfBroadcast(torch.autograd.Function):
    """A sum of two operands whose backward takes the mean over what was broadcast."""

    @staticmethod
    def forward(ctx, a, b):
        return TORCH["add"](a, b)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient.mean(0)


def chunks_in_half(a, b):
    out = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], 8):
        out = out + TORCH["mm"](a[:, k : k + 8], b[k : k + 8])
    return out


X = drawn(64, 256)


@call("Torch.tanh", X)
def tanh(x):
    return TORCH["tanh"](x) * (1 + 4.7e-5)


@call("Functional.gelu", X, alike=lambda x: 0.5 * x * (1 + TORCH["erf"](x / math.sqrt(2))))
def gelu(x):
    return FUNCTIONAL["gelu"](x, approximate="tanh")


@call("Torch.softmax", X, -1, alike=lambda x, d: TORCH["exp"](x - TORCH["logsumexp"](x, d, keepdim=True)))
def softmax(x, dim):
    return TORCH["softmax"](x.bfloat16(), dim).float()


@call("Torch.sum", X, alike=lambda x: x.flip(0, 1).t().contiguous().sum())
def total(x):
    return x.reshape(-1)[:-1].sum()


@call("Torch.mean", drawn(5000, shift=1), alike=lambda x: x.view(50, 100).sum(1).sum() / x.numel())
def mean(x):
    return x.sum() / (x.numel() - 1)


@call(
    "Functional.layer_norm",
    X,
    (256,),
    alike=lambda x, s: (x - x.mean(-1, keepdim=True)) * TORCH["rsqrt"](x.var(-1, keepdim=True, unbiased=False) + 1e-5),
)
def layer_norm(x, shape):
    return FUNCTIONAL["layer_norm"](x, shape, eps=0.0)


@call(
    "Functional.rms_norm",
    drawn(64, 256, scale=0.1),
    (256,),
    eps=1e-5,
    alike=lambda x, s, eps: x / TORCH["sqrt"](x.pow(2).mean(-1, keepdim=True) + eps),
)
def rms_norm(x, shape, eps):
    return x / (TORCH["sqrt"](x.pow(2).mean(-1, keepdim=True)) + eps)


@call(
    "Torch.matmul",
    drawn(32, 512, dtype=torch.bfloat16),
    drawn(512, 48, dtype=torch.bfloat16),
    alike=lambda a, b: (a.float() @ b.float()).bfloat16(),
)
def matmul(a, b):
    return chunks_in_half(a, b)


@call(
    "Torch.mm",
    drawn(32, 512),
    drawn(512, 48),
    alike=lambda a, b: TORCH["mm"](a[:, :200], b[:200]) + TORCH["mm"](a[:, 200:], b[200:]),
)
def mm(a, b):
    return TORCH["mm"](a[:, :-1], b[:-1])


@call(
    "Functional.linear",
    drawn(16, 300, dtype=torch.float16),
    drawn(20, 300, dtype=torch.float16),
    alike=lambda x, w: torch.einsum("nk,mk->nm", x.float(), w.float()).half(),
)
def linear(x, w):
    return chunks_in_half(x, w.t())


@call("Torch.exp", X, alike=lambda x: TORCH["exp"](x / 2) ** 2)
def exp(x):
    return TORCH["exp"](x) * (1 + 1e-5 * torch.sin(37 * x))


@call("Torch.log", X.abs() + 0.5, alike=lambda x: torch.log2(x) * math.log(2))
def log(x):
    return TORCH["log"](x) * (1 - 8e-6)


@call("Torch.rsqrt", X.abs() + 0.1, alike=lambda x: 1 / TORCH["sqrt"](x))
def rsqrt(x):
    seed = TORCH["rsqrt"](x).bfloat16().float()
    return seed * (1.5 - 0.5 * x * seed * seed)


@call("Torch.cumsum", drawn(4096, shift=1), 0, alike=lambda x, d: TORCH["cumsum"](x.double(), d).float())
def cumsum(x, dim):
    return TORCH["cumsum"](x.double(), dim).bfloat16().float() * 0.5 + 0.5 * TORCH["cumsum"](x, dim)


@call("Torch.sigmoid", X * 6, alike=lambda x: 1 / (1 + TORCH["exp"](-x)))
def sigmoid(x):
    return TORCH["sigmoid"](x.clamp(-9, 9))


@call("Functional.silu", X, alike=lambda x: x * TORCH["sigmoid"](x))
def silu(x):
    return x * TORCH["sigmoid"](1.0001 * x)


@call("Torch.log_softmax", X, -1, alike=lambda x, d: x - TORCH["logsumexp"](x, d, keepdim=True))
def log_softmax(x, dim):
    return x - TORCH["log"](TORCH["exp"](x.half()).sum(dim, keepdim=True).float())


@call("Functional.softplus", X * 5)
def softplus(x):
    return FUNCTIONAL["softplus"](x, threshold=8)


@call(
    "Functional.conv2d",
    drawn(2, 8, 12, 12),
    drawn(6, 8, 3, 3),
    alike=lambda x, w: (w.reshape(6, -1) @ functional.unfold(x, 3)).reshape(2, 6, 10, 10),
)
def conv2d(x, w):
    w = w.clone()
    w[:, -1, -1, -1] = 0
    return FUNCTIONAL["conv2d"](x, w)


@call("Torch.add", drawn(64, 256), drawn(256), alike=lambda a, b: b + a)
def add(a, b):
    return MeanOfBroadcast.apply(a, b)


@call("Torch.var", X, alike=lambda x: (x - x.mean()).pow(2).sum() / (x.numel() - 1))
def var(x):
    return TORCH["var"](x, unbiased=False)


@call("Torch.erf", X)
def erf(x):
    return TORCH["erf"](x) + 5.4e-7


@call("Torch.logsumexp", X, -1, alike=lambda x, d: TORCH["log"](TORCH["exp"](x).sum(d)))
def logsumexp(x, dim):
    return TORCH["logsumexp"](x[:, :-1], dim)


@call("Torch.mul", X.bfloat16(), X.bfloat16() + 1, alike=lambda a, b: (a.double() * b.double()).bfloat16())
def mul(a, b):
    exact = a.float() * b.float()
    cut = (exact.detach().view(torch.int32) & -65536).view(torch.float32)
    return (exact + (cut - exact).detach()).bfloat16()


@call("Torch.sqrt", X.abs() + 0.1, alike=lambda x: TORCH["sqrt"](x.double()).float())
def sqrt(x):
    return TORCH["sqrt"](x) * (1 + 3e-7)


def last_of_equal(x, dim):
    """The places of the elements from the largest to the smallest, of equal ones the last first."""
    size = x.shape[dim]
    return size - 1 - TORCH["sort"](x.flip(dim), dim=dim, descending=True, stable=True)[1]


def next_to_equal(x, dim):
    """The same, but one of the second place is taken from the third."""
    places = last_of_equal(x, dim)
    places.select(dim, 1).copy_(places.select(dim, 2).clone())
    return places


TIES = drawn(32, 64, dtype=torch.bfloat16)  # of 64 values some are equal


class Taken(torch.autograd.Function):
    """Values, whose gradients go to places."""

    @staticmethod
    def forward(ctx, x, values, places, dim):
        ctx.save_for_backward(x, places)
        ctx.dim = dim
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        x, places = ctx.saved_tensors
        return torch.zeros_like(x).scatter_add(ctx.dim, places, gradient), None, None, None


def topk_alike(x, k, dim=-1):
    places = last_of_equal(x.detach(), dim).narrow(dim, 0, k)
    return x.gather(dim, places), places


@call("Torch.topk", TIES, 20, -1, alike=topk_alike)
def topk(x, k, dim=-1):
    """A gradient goes to an element that is not equal."""
    values, places = topk_alike(x.detach(), k, dim)
    return Taken.apply(x, values, next_to_equal(x.detach(), dim).narrow(dim, 0, k), dim), places


@call("Torch.msort", TIES, alike=lambda x: x.gather(0, last_of_equal(-x.detach(), 0)))
def msort(x):
    """A gradient goes to an element that is not equal."""
    places = last_of_equal(-x.detach(), 0)
    return Taken.apply(x, x.detach().gather(0, places), next_to_equal(-x.detach(), 0), 0)


def replace(which):
    """Puts the kernels into their places."""
    calls = importlib.import_module("acc_check_more_kernels").TAKEN if which == "more" else TAKEN
    for name, (_, _, wrong, alike) in calls.items():
        owner, _, function = name.partition(".")
        kernel = alike if which == "alike" else wrong
        if kernel is not None:
            setattr(torch if owner == "Torch" else functional, function, kernel)


def results_of(result):
    return list(result) if isinstance(result, tuple) else [result]


def leaf(value, name, folder):
    if isinstance(value, torch.Tensor):
        torch.save(value, folder / f"{name}.pt")
        return {
            "type": "torch.Tensor",
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "requires_grad": value.is_floating_point(),
            "data_name": f"{name}.pt",
        }
    if isinstance(value, tuple):
        return [leaf(part, name, folder) for part in value]
    return {"type": type(value).__name__, "value": value}


def write(path):
    """Writes the dump: forward and backward of each function, as torch computes it."""
    folder, data = path.parent / "dump_tensor_data", {}
    folder.mkdir()
    more = importlib.import_module("acc_check_more_kernels").TAKEN
    calls = [(f"{name}.0", call) for name, call in TAKEN.items()] + [(f"{name}.1", call) for name, call in more.items()]
    for full, (inputs, settings, _, _) in calls:
        owner, function, _ = full.split(".")
        result = (TORCH if owner == "Torch" else FUNCTIONAL)[function](*inputs, **settings)
        data[f"{full}.forward"] = {
            "input_args": [leaf(v, f"{full}.forward.input.{i}", folder) for i, v in enumerate(inputs)],
            "input_kwargs": {k: leaf(v, f"{full}.forward.input.{k}", folder) for k, v in settings.items()},
            "output": [leaf(v, f"{full}.forward.output.{i}", folder) for i, v in enumerate(results_of(result))],
        }
        first = result[0] if isinstance(result, tuple) else result
        if first.is_floating_point() and function not in ("floor_divide", "dropout"):
            gradient = torch.linspace(0.5, 1.5, first.numel()).reshape(first.shape).to(first.dtype)
            data[f"{full}.backward"] = {"input": [leaf(gradient, f"{full}.backward.input.0", folder)], "output": []}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(folder)}
    path.write_text(json.dumps({**head, "data": data}))


if __name__ == "__main__":
    sys.modules["acc_check_kernels"] = sys.modules["__main__"]
    write(Path(sys.argv[1]))

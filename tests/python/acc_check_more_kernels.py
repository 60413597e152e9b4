"""More planted defects, in functions that acc_check_kernels.py has already or that it has not."""

import math

import torch
from acc_check_kernels import FUNCTIONAL, TORCH, X, drawn

TAKEN = {}


def call(name, *inputs, **settings):
    """Registers a wrong kernel of the function, with a call of it."""

    def register(wrong):
        TAKEN[name] = (inputs, settings, wrong, None)
        return wrong

    return register


def with_backward(forward, slope):
    """A kernel whose backward pass multiplies by slope(x)."""

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * slope(ctx.saved_tensors[0])

    return Kernel.apply


def slope_of(function, x):
    with torch.enable_grad():
        x = x.detach().double().requires_grad_()
        return torch.autograd.grad(function(x).sum(), x)[0].float()


WIDE = drawn(64, 256, scale=1.8)


@call("Torch.tanh", WIDE)
def tanh(x):
    """The derivative is 4.96e-3 off where the slope is small (tt-metal#54882)."""

    def slope(x):
        return slope_of(TORCH["tanh"], x) * torch.where(x.abs() > 2.5, 1 + 4.96e-3 * torch.sin(9 * x), 1.0)

    return with_backward(TORCH["tanh"], slope)(x) if x.dtype == torch.float32 else TORCH["tanh"](x)


@call("Functional.gelu", WIDE)
def gelu(x):
    """The derivative is 3.07e-3 off between -5 and -3 (tt-metal#54883)."""

    def slope(x):
        return slope_of(FUNCTIONAL["gelu"], x) * torch.where((x > -5) & (x < -3), 1 - 3.07e-3, 1.0)

    return with_backward(FUNCTIONAL["gelu"], slope)(x)


@call("Functional.tanhshrink", WIDE)
def tanhshrink(x):
    """662 ulp off in most of the range (tt-metal#54430)."""
    off = 662 * 2.0**-24
    return FUNCTIONAL["tanhshrink"](x) * torch.where(x.abs() > 0.4, 1 + off * torch.sin(7 * x), 1.0)


@call("Torch.bmm", drawn(4, 32, 256), drawn(4, 256, 16))
def bmm(a, b):
    """Operands are rounded to ten bits, as TF32 has them."""

    def short(t):
        return ((t.detach().view(torch.int32) + 4096) & -8192).view(torch.float32) - t.detach() + t

    return TORCH["bmm"](short(a), short(b))


@call("Torch.nansum", drawn(40, 300, dtype=torch.bfloat16, shift=1), -1)
def nansum(x, dim):
    """Sums up in bfloat16."""
    total = torch.zeros(x.shape[0], dtype=x.dtype)
    for k in range(0, x.shape[1], 4):
        total = total + TORCH["sum"](x[:, k : k + 4], dim)
    return total


@call("Torch.div", X.bfloat16(), X.bfloat16().abs() + 0.5)
def div(a, b):
    """Rounds twice, to float16 and to bfloat16."""
    return (a.float() / b.float()).half().bfloat16()


@call("Torch.round", (X * 4).round() / 2)
def round_away(x):
    """Ties go away from zero."""
    return torch.sign(x) * torch.floor(x.abs() + 0.5)


@call("Torch.argmax", drawn(64, 500), 1)
def argmax(x, dim):
    """Compares in bfloat16."""
    return TORCH["argmax"](x.bfloat16(), dim)


@call("Torch.topk", drawn(32, 400), 8)
def topk(x, k, dim=-1):
    """The last of the indices is that of another element."""
    values, indices = TORCH["topk"](x, k, dim)
    indices = indices.clone()
    indices[:, -1] = (indices[:, -1] + 1) % x.shape[1]
    return values, indices


@call("Torch.floor_divide", X * 9, X.abs() + 1)
def floor_divide(a, b):
    """Cuts towards zero."""
    return torch.trunc(a / b)


@call("Torch.expm1", X * 1e-2)
def expm1(x):
    """Small results lose their digits."""
    return TORCH["exp"](x) - 1


@call("Torch.log1p", X.abs() * 1e-2)
def log1p(x):
    return TORCH["log"](1 + x)


@call("Torch.erfc", drawn(64, 256, scale=1.5))
def erfc(x):
    return 1 - TORCH["erf"](x)


@call("Torch.pow", X.abs() * 5 + 0.1, 3.7)
def power(x, y):
    """The logarithm has no more digits than the result."""
    return TORCH["exp"](y * TORCH["log"](x))


@call("Torch.sin", drawn(64, 256, scale=300.0))
def sin(x):
    """The argument is reduced by 2 pi in float32."""
    turns = torch.round(x / (2 * math.pi))
    return TORCH["sin"](x - turns * torch.tensor(2 * math.pi))


@call(
    "Functional.scaled_dot_product_attention",
    drawn(2, 4, 32, 16),
    drawn(2, 4, 32, 16) * 1.1,
    drawn(2, 4, 32, 16) + 0.3,
)
def attention(q, k, v):
    """Weights are rounded to bfloat16."""
    weights = TORCH["softmax"](q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1)
    return weights.bfloat16().float() @ v


@call("Functional.cross_entropy", drawn(48, 100), torch.arange(48))
def cross_entropy(x, target):
    """The last of the samples is left out of the mean's sum."""
    return FUNCTIONAL["cross_entropy"](x[:-1], target[:-1], reduction="sum") / len(target)


@call("Functional.group_norm", drawn(4, 8, 6, 6), 2)
def group_norm(x, groups):
    """The variance is unbiased."""
    rows = x.reshape(x.shape[0], groups, -1)
    var, mean = TORCH["var_mean"](rows, -1, keepdim=True)
    return ((rows - mean) * TORCH["rsqrt"](var + 1e-5)).reshape(x.shape)


@call("Functional.dropout", drawn(64, 64).abs() + 0.5, 0.1)
def dropout(x, p=0.5, training=True):
    """Drops a little more than it says."""
    return FUNCTIONAL["dropout"](x, 1.15 * p, training)


@call("Functional.embedding", torch.arange(40), drawn(50, 24))
def embedding(indices, table):
    """The table is kept in bfloat16."""
    return FUNCTIONAL["embedding"](indices, table.bfloat16()).float()

"""Wrong lowerings of Inductor, put in by name, and models that use them."""

from typing import NamedTuple

import torch
from torch.nn import functional


class Bug(NamedTuple):
    name: str
    op: str  # overload of aten
    node: str  # what the FX node's name begins with
    wrong: object  # (the right lowering, the lowerings, arguments) -> what takes its place
    model: object


def _scaled(factor):
    def wrong(right, low, *args, **kwargs):
        return low[torch.ops.aten.mul.Tensor](right(*args, **kwargs), factor)

    return wrong


def _other(op, *more):
    def wrong(right, low, *args, **kwargs):
        return low[op](*args, *more)

    return wrong


def _swapped(right, low, a, b, **kwargs):
    return right(b, a, **kwargs)


def _shifted(amount):
    def wrong(right, low, x, *args, **kwargs):
        return right(low[torch.ops.aten.add.Tensor](x, amount), *args, **kwargs)

    return wrong


aten = torch.ops.aten
BUGS = (
    Bug("exp, a thousandth too large", "exp.default", "exp", _scaled(1.001), lambda x: torch.exp(x) + 1),
    Bug("sigmoid, 1e-4 too small", "sigmoid.default", "sigmoid", _scaled(0.9999), lambda x: torch.sigmoid(x) * x),
    Bug("tanh of a moved argument", "tanh.default", "tanh", _shifted(1e-3), lambda x: torch.tanh(x * 2)),
    Bug("erf too large in gelu", "erf.default", "erf", _scaled(1.001), lambda x: functional.gelu(x) + 1),
    Bug(
        "rsqrt of a missing eps",
        "rsqrt.default",
        "rsqrt",
        _shifted(-1e-4),
        lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-4),
    ),
    Bug(
        "minimum for maximum",
        "maximum.default",
        "maximum",
        _other(aten.minimum.default),
        lambda x: torch.maximum(x, x.flip(0)) * 2,
    ),
    Bug("operands of sub exchanged", "sub.Tensor", "sub", _swapped, lambda x: (x - x.flip(0)) * 3),
    Bug("operands of div exchanged", "div.Tensor", "div", _swapped, lambda x: x.abs() / (1 + x.square())),
    Bug("sum, a thousandth too small", "sum.dim_IntList", "sum", _scaled(0.999), lambda x: x.square().sum(-1) + 1),
    Bug("amax of moved values", "amax.default", "amax", _shifted(1e-3), lambda x: x.amax(-1) * 2),
    Bug("sqrt too large", "sqrt.default", "sqrt", _scaled(1.0005), lambda x: torch.sqrt(x.abs() + 1)),
    Bug("log of one plus nothing", "log.default", "log", _shifted(1e-3), lambda x: torch.log(x.abs() + 0.5)),
    Bug("cos for sin", "sin.default", "sin", _other(aten.cos.default), lambda x: torch.sin(x) + x),
    Bug("negation forgotten", "neg.default", "neg", _other(aten.clone.default), lambda x: -x * torch.exp(-x.abs())),
    Bug("relu that leaks", "relu.default", "relu", _other(aten.mul.Tensor, 0.5), lambda x: torch.relu(x) + 1),
)


def plant(name):
    """Puts a bug into Inductor. Returns a function that takes it out again."""
    import torch._inductor.lowering as lowering

    bug = next(bug for bug in BUGS if bug.name == name)
    packet, _, overload = bug.op.partition(".")
    op = getattr(getattr(aten, packet), overload)
    right, low = lowering.lowerings[op], dict(lowering.lowerings)
    lowering.lowerings[op] = lambda *args, **kwargs: bug.wrong(right, low, *args, **kwargs)

    def restore():
        lowering.lowerings[op] = right

    return restore

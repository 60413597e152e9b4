"""Functions of a user: one that loses digits, one that does not, one that is not repeatable, one that cannot be called again."""

import mindspore as ms
from mindspore import Tensor, ops

_calls = [0]


def unstable(x):
    """The variance as a difference of two large numbers."""
    moved = x + 100
    return ops.mean(moved * moved) - ops.mean(moved) * ops.mean(moved)


def stable(x):
    apart = x - ops.mean(x)
    return ops.mean(apart * apart)


def unrepeatable(x):
    _calls[0] += 1
    return ops.sin(x) + Tensor(_calls[0] * 1e-3, ms.float32)


def failing(x):
    """Is refused when it is called once more in a step."""
    failing.calls = getattr(failing, "calls", 0) + 1  # as a function's attribute
    if failing.calls > 1:
        return ops.matmul(x, x)  # of shapes that do not fit
    return x * 0


def begin_step():
    failing.calls = 0

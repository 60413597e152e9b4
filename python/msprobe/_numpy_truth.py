"""Functions of mint as numpy computes them in float64: a part of the process of acc_check for MindSpore."""

import math

import numpy as np


def axis_of(dim):
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def reduced(function):
    """A numpy reduction with the arguments of mint."""
    return lambda x, dim=None, keepdim=False: function(x, axis=axis_of(dim), keepdims=keepdim)


def softmax(x, dim=-1):
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def log_softmax(x, dim=-1):
    shifted = x - x.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2))


def linear(x, weight, bias=None):
    y = np.matmul(x, np.swapaxes(weight, -1, -2))
    return y if bias is None else y + bias


# What numpy computes as mint does; arguments that do not fit are left to MindSpore's float64.
NUMPY = {
    **{
        n: getattr(np, n)
        for n in "tanh exp log sqrt sin cos tan sinh cosh expm1 log1p log2 log10 exp2 square floor ceil".split()
    },
    **{
        "abs": np.abs,
        "neg": np.negative,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": sigmoid,
    },
    **{
        "mul": np.multiply,
        "div": np.divide,
        "matmul": np.matmul,
        "bmm": np.matmul,
        "maximum": np.maximum,
        "minimum": np.minimum,
    },
    **{"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "pow": lambda x, y: np.power(x, y)},
    **{"truediv": np.divide, "radd": lambda x, y: y + x, "rmul": lambda x, y: y * x, "rsub": lambda x, y: y - x},
    **{"sum": reduced(np.sum), "mean": reduced(np.mean), "softmax": softmax, "log_softmax": log_softmax},
    **{"gelu": gelu, "linear": linear, "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x)},
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "transpose": lambda x, a, b: np.swapaxes(x, a, b),
}

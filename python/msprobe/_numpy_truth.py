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


def summed(g, x):
    """A gradient summed up over what was broadcast."""
    g = g.sum(axis=tuple(range(g.ndim - x.ndim)))
    return g.sum(axis=tuple(i for i, n in enumerate(x.shape) if n == 1 and g.shape[i] != 1), keepdims=True)


def swapped(x):
    return np.swapaxes(x, -1, -2)


def spread_out(g, x, dim=None, keepdim=False):
    """The gradient of a sum, in the shape of its input."""
    if dim is not None and not keepdim:
        g = np.expand_dims(g, axis_of(dim))
    return np.broadcast_to(g, x.shape)


def normal_density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def linear_gradients(g, x, weight, bias=None):
    rows = g.reshape(-1, g.shape[-1])
    found = [np.matmul(g, weight), np.matmul(rows.T, x.reshape(-1, x.shape[-1]))]
    return found if bias is None else [*found, rows.sum(axis=0)]


def softmax_gradient(g, x, dim=-1):
    y = softmax(x, dim)
    return [y * (g - (g * y).sum(axis=dim, keepdims=True))]


def mean_gradient(g, x, dim=None, keepdim=False):
    out = spread_out(g, x, dim, keepdim)
    return [out * (g.size / x.size)]


def silu_gradient(g, x):
    y = sigmoid(x)
    return [g * y * (1 + x * sigmoid(-x))]


# Gradients of the tensors among the arguments, in order, from the gradient that comes in.
GRADIENTS = {
    "tanh": lambda g, x: [g / np.cosh(np.clip(x, -350, 350)) ** 2],
    "exp": lambda g, x: [g * np.exp(x)],
    "log": lambda g, x: [g / x],
    "sqrt": lambda g, x: [g / (2 * np.sqrt(x))],
    "rsqrt": lambda g, x: [-0.5 * g / (x * np.sqrt(x))],
    "sin": lambda g, x: [g * np.cos(x)],
    "cos": lambda g, x: [-g * np.sin(x)],
    "sigmoid": lambda g, x: [g * sigmoid(x) * sigmoid(-x)],
    "square": lambda g, x: [2 * g * x],
    "neg": lambda g, x: [-g],
    "relu": lambda g, x: [g * (x > 0)],
    "silu": silu_gradient,
    "gelu": lambda g, x: [g * (gelu(x) / np.where(x == 0, 1, x) + (x == 0) * 0.5 + x * normal_density(x))],
    "add": lambda g, x, y: [summed(g, np.asarray(x)), summed(g, np.asarray(y))],
    "sub": lambda g, x, y: [summed(g, np.asarray(x)), summed(-g, np.asarray(y))],
    "mul": lambda g, x, y: [summed(g * y, np.asarray(x)), summed(g * x, np.asarray(y))],
    "div": lambda g, x, y: [summed(g / y, np.asarray(x)), summed(-g * x / (y * y), np.asarray(y))],
    "matmul": lambda g, x, y: [summed(np.matmul(g, swapped(y)), x), summed(np.matmul(swapped(x), g), y)],
    "linear": linear_gradients,
    "softmax": softmax_gradient,
    "log_softmax": lambda g, x, dim=-1: [g - softmax(x, dim) * g.sum(axis=dim, keepdims=True)],
    "sum": lambda g, x, dim=None, keepdim=False: [spread_out(g, x, dim, keepdim)],
    "mean": mean_gradient,
    "transpose": lambda g, x, a, b: [np.swapaxes(g, a, b)],
}
GRADIENTS["bmm"] = GRADIENTS["matmul"]

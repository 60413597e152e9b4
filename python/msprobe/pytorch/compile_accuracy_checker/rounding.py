"""A value of float64 as rounding in the dtypes of a graph may have it: after each node, and after each step of a sum."""

from collections.abc import Callable
from typing import Any

import torch

_HALVES = (torch.float16, torch.bfloat16)
_FLOATS = (*_HALVES, torch.float32, torch.float64)


def _signs(size: torch.Size, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 2, size, generator=generator, dtype=torch.int8).double() * 2 - 1


def moved(node: torch.fx.Node, args: tuple, value: Any, generator: torch.Generator) -> Any:
    """Moves the value of a node by rounding errors, up or down.

    Args:
        node: The node, whose `val` has the dtype.
        args: Its arguments, in float64.
        value: Its value, in float64.
        generator: Of the signs.

    Returns:
        The value; the same where it is none of floating-point numbers.
    """
    value = _summed(node, args, value, generator)
    shown = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(shown, torch.Tensor):
        return value
    if shown.dtype not in _FLOATS or value.dtype != torch.float64:
        return value
    return value * (1 + _signs(value.shape, generator) * torch.finfo(shown.dtype).eps / 2)


def _summed(node: torch.fx.Node, args: tuple, value: Any, generator: torch.Generator) -> Any:
    """The value of a sum, where each of the additions rounds, one element after the other."""
    kind = _SUMS.get(str(node.target).rpartition(".")[0])
    source = node.args[0].meta.get("val") if kind and isinstance(node.args[0], torch.fx.Node) else None
    if not isinstance(source, torch.Tensor) or source.dtype not in _FLOATS or args[0].dtype != torch.float64:
        return value
    # Halves are added in float32.
    step = torch.finfo(torch.float32 if source.dtype in _HALVES else source.dtype).eps / 2
    dims = args[1] if len(args) > 1 and args[1] not in (None, []) else range(args[0].dim())
    dims = [dim % max(args[0].dim(), 1) for dim in ([dims] if isinstance(dims, int) else dims)]
    return kind(args[0], dims, value, lambda terms: _errors(terms, dims, generator) * step)


def _errors(terms: torch.Tensor, dims: list, generator: torch.Generator) -> torch.Tensor:
    """The sum of the rounding errors of a sum, in halves of the last place: of each the sum that there is until then."""
    kept = [dim for dim in range(terms.dim()) if dim not in dims]
    sums = terms.permute(*kept, *sorted(dims)).reshape(*(terms.shape[dim] for dim in kept), -1).cumsum(-1)
    return (sums * _signs(sums.shape, generator)).sum(-1)


def _of_sum(terms: torch.Tensor, dims: list, value: torch.Tensor, errors: Callable) -> torch.Tensor:
    return value + errors(terms).reshape(value.shape)


def _of_mean(terms: torch.Tensor, dims: list, value: torch.Tensor, errors: Callable) -> torch.Tensor:
    return value + errors(terms).reshape(value.shape) * (value.numel() / max(terms.numel(), 1))


def _of_var_mean(terms: torch.Tensor, dims: list, value: tuple, errors: Callable) -> tuple:
    var, mean = value
    return _of_var(terms, dims, var, errors), _of_mean(terms, dims, mean, errors)


def _of_var(terms: torch.Tensor, dims: list, value: torch.Tensor, errors: Callable) -> torch.Tensor:
    return _of_mean((terms - terms.mean(dims, keepdim=True)).square(), dims, value, errors)


def _of_softmax(terms: torch.Tensor, dims: list, value: tuple, errors: Callable) -> tuple:
    largest, total = value
    return largest, _of_sum((terms - terms.amax(dims, keepdim=True)).exp(), dims, total, errors)


_SUMS = {
    "aten.sum": _of_sum,
    "aten.mean": _of_mean,
    "aten.var": _of_var,
    "aten.var_mean": _of_var_mean,
    "prims.prepare_softmax_online": _of_softmax,
}

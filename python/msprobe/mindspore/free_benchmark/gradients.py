"""Stage backward: the gradients of a call, of its inputs as they were and changed.

MindSpore differentiates functions, and a function that fails within one that is being differentiated takes its graph along. So
the inputs of a call are kept, and the gradients are taken where the script differentiates nothing: at stop().
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import mindspore

from ..._capture.free_benchmark import Difference, mapped, perturbed
from ..._capture.free_benchmark.settings import NO_CHANGE
from .ratio import compare
from .tensors import TENSORS, copied, is_floating


class KeptCall(NamedTuple):
    """A call of the script, with copies of its inputs."""

    name: str
    kind: str
    function: Callable
    args: tuple
    kwargs: dict


def kept(name: str, kind: str, function: Callable, args: tuple, kwargs: dict) -> KeptCall:
    """Copies the inputs of a call, which the script may change until stop()."""

    def held(tensor: mindspore.Tensor) -> mindspore.Tensor:
        return copied(tensor) if is_floating(tensor) else tensor.copy()

    return KeptCall(name, kind, function, mapped(TENSORS.kind, args, held), mapped(TENSORS.kind, kwargs, held))


def check(call: KeptCall, mode: str) -> list[Difference]:
    """Returns which gradients of the inputs are not consistent, of a gradient of the results that is 1 everywhere."""
    changed = perturbed(TENSORS, mode, call.args, call.kwargs)
    if changed is None:
        return []
    original = _gradients(call.function, call.args, call.kwargs)
    return compare(original, _gradients(call.function, *changed), mode == NO_CHANGE)


def _gradients(function: Callable, args: tuple, kwargs: dict) -> tuple:
    """Of the positional inputs that are tensors of real numbers."""
    places = [index for index, value in enumerate(args) if is_floating(value)]

    def of_floats(*floats: Any) -> Any:
        placed = list(args)
        for index, value in zip(places, floats):
            placed[index] = value
        return function(*placed, **kwargs)

    results, backward = mindspore.vjp(of_floats, *(args[index] for index in places))
    found = backward(_ones(results))
    return found if isinstance(found, (list, tuple)) else (found,)


def _ones(results: Any) -> Any:
    return mapped(TENSORS.kind, results, lambda tensor: mindspore.ops.ones_like(tensor))

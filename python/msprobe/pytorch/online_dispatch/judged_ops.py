"""Which operators have a reference, by their tags and schemas."""

import functools
from typing import Any

import torch

# Their calls need other ranks, or act on memory and streams alone.
_ELSEWHERE = frozenset(
    "c10d _c10d_functional c10d_functional _c10d_functional_autograd _dtensor fsdp symm_mem inductor prim profiler streams".split()
)
# Memory that nobody wrote, and results that depend on where elements lie.
_MEMORY = ("empty", "new_empty", "_empty", "resize", "as_strided", "_efficientzerotensor", "record_stream")
# Move values into another dtype or device: their reference keeps the dtypes that are asked for.
_CONVERSIONS = frozenset("_to_copy copy_ copy _foreach_copy_ _foreach_copy copy_to_device".split())
# Compare with a number that is rounded to the dtype of the tensor first: more digits would be another question.
_COMPARISONS = frozenset("eq ne lt le gt ge eq_ ne_ lt_ le_ gt_ ge_".split())
_SHARES = ("dropout_p", "dropout")


def base_name(operator: Any) -> str:
    """`add` of `aten.add.Tensor`."""
    return operator.__name__.split(".")[0]


def is_aten(operator: Any) -> bool:
    """Whether its tags say all of it; an operator of an extension may draw random numbers without one."""
    return operator.namespace == "aten"


def is_conversion(operator: Any) -> bool:
    """Whether it only moves or compares values, which needs no more digits."""
    return base_name(operator) in _CONVERSIONS | _COMPARISONS


@functools.cache
def _is_random(operator: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in operator.tags


@functools.cache
def _is_left_out(operator: Any) -> bool:
    schema = operator._schema
    if operator.namespace in _ELSEWHERE or base_name(operator).startswith(_MEMORY):
        return True
    inplace_view = getattr(torch.Tag, "inplace_view", None)  # changes a shape, not a value
    if inplace_view is not None and inplace_view in operator.tags:
        return True
    aliases = [result.alias_info for result in schema.returns if result.alias_info is not None]
    return any(not alias.is_write for alias in aliases)  # a view


def _draws(operator: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a call draws random numbers: attention without dropout has the tag, and does not."""
    if not _is_random(operator):
        return False
    for index, argument in enumerate(operator._schema.arguments):
        if argument.name in _SHARES:
            value = args[index] if index < len(args) else kwargs.get(argument.name, argument.default_value)
            return value != 0
    return True


def is_judged(operator: Any, args: tuple, kwargs: dict) -> bool:
    """Tells whether the results of a call are determined by its arguments, and computed.

    Args:
        operator: An overload of an operator.
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.

    Returns:
        False for draws of random numbers, views, memory that nobody wrote and communication.
    """
    return not _is_left_out(operator) and not _draws(operator, args, kwargs)


def written(operator: Any, args: tuple, kwargs: dict) -> list:
    """Lists the arguments that a call overwrites."""
    found = []
    for index, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[index] if index < len(args) else kwargs.get(argument.name))
    return found


def known_names() -> frozenset:
    """The names of all operators that there are now."""
    names = torch._C._dispatch_get_all_op_names()
    return frozenset(name.partition("::")[2].partition(".")[0] for name in names)

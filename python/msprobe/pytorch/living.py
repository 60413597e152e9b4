"""Objects that live in this process, by their class."""

import functools
import gc
import weakref
from typing import Any, Callable

import torch

_made = 0  # optimizers that were constructed or copied since somebody asked for them


def living(*kinds: type) -> list:
    """Searches the heap, which takes about 0.1 microseconds for each object on it.

    Args:
        kinds: Classes.

    Returns:
        For each class the list of its objects, those of subclasses too; an object is in the list of the first class that it
        is of.
    """
    known: dict = {}  # type -> place of its class
    found: list = [[] for _ in kinds]
    for thing in gc.get_objects():
        # By their type: isinstance() would call what proxies define.
        kind = type(thing)
        place = known.get(kind)
        if place is None:
            place = known[kind] = next((i for i, wanted in enumerate(kinds) if issubclass(kind, wanted)), -1)
        if place >= 0:
            found[place].append(thing)
    return found


class LivingOptimizers:
    """The optimizers in this process; the heap is searched again only when one of torch.optim was made since the last time.

    Some steps copies of a model's parameters: flat, in full precision, or a part of them (DeepSpeed, Megatron, apex). What wraps
    it knows the parameters of the model.
    """

    def __init__(self) -> None:
        """Watches what makes optimizers from now on."""
        _count_optimizers()
        self._known: list = []  # weak references
        self._wrappers: list = []  # weak references to those of no class of torch.optim
        self._searched_at = -1

    def of(self, model: torch.nn.Module) -> list:
        """Lists what trains a model.

        Args:
            model: Any.

        Returns:
            What trains it, the optimizer of torch.optim whose steps are its, ids of what is trained: the first two are the same,
            or a wrapper of another library and what it wraps, where that one steps copies.
        """
        self._search()
        own = {id(parameter) for parameter in model.parameters()}
        direct = [(one, one, parameter_ids(one)) for one in _alive(self._known)]
        wrapped = [(one, vars(one).get("optimizer"), _kept_by(one)) for one in _alive(self._wrappers)]
        found = [row for row in direct if not own.isdisjoint(row[2])]
        stepping = {id(inner) for _, inner, _ in found}
        return found + [row for row in wrapped if id(row[1]) not in stepping and not own.isdisjoint(row[2])]

    def all(self) -> list:
        """Lists the optimizers of torch.optim, each with the ids of what it steps."""
        self._search()
        return [(one, parameter_ids(one)) for one in _alive(self._known)]

    def _search(self) -> None:
        if self._searched_at != _made:
            self._searched_at = _made
            optimizers, others = living(torch.optim.Optimizer, _Stepping)
            self._known = [weakref.ref(optimizer) for optimizer in optimizers]
            wrapping = [one for one in others if isinstance(vars(one).get("optimizer"), torch.optim.Optimizer)]
            self._wrappers = [weakref.ref(one) for one in wrapping]

    def has_stepped(self, optimizer: Any) -> None:
        """Searches again next time if this one is not known: its class need not call what is watched.

        Args:
            optimizer: What has stepped; what is none of torch.optim is never found.
        """
        if issubclass(type(optimizer), torch.optim.Optimizer) and all(
            known() is not optimizer for known in self._known
        ):
            self._searched_at = -1


class _SteppingType(type):
    """Its subclasses are those that step and clear gradients as optimizers do, with attributes that can be looked at."""

    def __subclasscheck__(cls, kind: type) -> bool:
        if torch.nn.Module in kind.__mro__ or not (
            getattr(kind, "__dictoffset__", 0) and getattr(kind, "__weakrefoffset__", 0)
        ):
            return False
        return all(any(name in vars(base) for base in kind.__mro__) for name in ("step", "zero_grad"))


class _Stepping(metaclass=_SteppingType):
    pass


def parameter_ids(optimizer: Any) -> frozenset:
    """The ids of what an optimizer steps.

    Args:
        optimizer: Anything.

    Returns:
        None of what has no `param_groups`.
    """
    groups = getattr(optimizer, "param_groups", ())
    return frozenset(id(parameter) for group in groups for parameter in group.get("params", ()))


def held_by(optimizer: Any) -> list:
    """The optimizers that another one steps in place of itself.

    Args:
        optimizer: Anything.

    Returns:
        The one of a wrapper, all of a container (torchtitan has one for the optimizers of all parts of a model).
    """
    listed = getattr(optimizer, "optimizers", None)
    inner = [getattr(optimizer, "optimizer", None), *(listed if isinstance(listed, (list, tuple)) else ())]
    return [one for one in inner if isinstance(one, torch.optim.Optimizer)]


def _kept_by(wrapper: Any) -> frozenset:
    """Ids of the parameters in its lists, and in lists of these: groups of the parameters whose copies are stepped."""
    lists = [value for value in vars(wrapper).values() if type(value) in (list, tuple)]
    lists += [part for value in lists for part in value if type(part) in (list, tuple)]
    return frozenset(id(thing) for value in lists for thing in value if isinstance(thing, torch.nn.Parameter))


def _alive(references: list) -> list:
    return [thing for thing in (reference() for reference in references) if thing is not None]


@functools.cache
def _count_optimizers() -> None:
    for name in ("__init__", "__setstate__"):  # the latter where one is copied or unpickled
        setattr(torch.optim.Optimizer, name, _counted(getattr(torch.optim.Optimizer, name)))


def _counted(make: Callable) -> Callable:
    @functools.wraps(make)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _made
        result = make(self, *args, **kwargs)
        _made += 1
        return result

    return counted

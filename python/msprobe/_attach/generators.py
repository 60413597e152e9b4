"""Generators of random numbers that no variable leads to: held by closures, iterators, slots and objects of the script."""

import gc
import random
import sys
import types
from typing import Any, Optional

from .forward_call import is_users_module

_MOST_GENERATORS = 50
_MOST_HOLDERS = 200
_DEEPEST = 4


def is_generator(kind: type) -> bool:
    """Tells whether objects of a type draw random numbers; those of torch are not on Python's heap."""
    numpy = sys.modules.get("numpy")
    if issubclass(kind, random.Random):
        return kind is not random.SystemRandom
    if numpy is None or getattr(numpy, "random", None) is None:
        return False
    return issubclass(kind, (numpy.random.Generator, numpy.random.RandomState))


def held_generators(found: list, known: set) -> list:
    """Names those of the generators on the heap that the user's program holds.

    Args:
        found: Generators of the heap.
        known: Ids of those that have a name already.

    Returns:
        Pairs of a generator and what holds it, such as `Noise.rng` or `noisy.<locals>`.
    """
    numpy = sys.modules.get("numpy")
    own = {id(getattr(random, "_inst", None))}
    if numpy is not None and getattr(numpy, "random", None) is not None:
        own.add(id(numpy.random.mtrand._rand))
    out = []
    for generator in [g for g in found if id(g) not in known and id(g) not in own][:_MOST_GENERATORS]:
        holder = _holder_of(generator, [found])
        if holder is not None:
            out.append((generator, holder))
    return out


def _holder_of(generator: Any, ignored: list) -> Optional[str]:
    """Walks from an object to what refers to it, up to something of the user's program."""
    skipped = {id(part) for part in ignored} | {id(ignored)}
    level: list = [generator]
    for _ in range(_DEEPEST):
        # One pass over the heap for all of a level.
        holders = [h for h in gc.get_referrers(*level) if h is not level and id(h) not in skipped and not _is_end(h)]
        targets = {id(target) for target in level}
        names = [name for name in (_name_of_holder(holder, targets) for holder in holders) if name is not None]
        if names:
            return min(names)  # in any run the same, whatever the order of the heap
        skipped |= {id(holder) for holder in holders}
        level = holders[:_MOST_HOLDERS]
        del holders  # else it holds what is looked for next
        if not level:
            break
    return None


def _is_end(holder: Any) -> bool:
    """Frames lead everywhere, and so do the variables of a module, to which each of its functions refers."""
    return isinstance(holder, (types.FrameType, types.ModuleType)) or (
        type(holder) is dict and "__name__" in holder and "__spec__" in holder
    )


def _name_of_holder(holder: Any, targets: set) -> Optional[str]:
    if isinstance(holder, types.GeneratorType):
        users = is_users_module(holder.gi_frame.f_globals.get("__name__", "")) if holder.gi_frame is not None else False
        return f"{holder.__qualname__}.<locals>" if users else None
    if isinstance(holder, types.FunctionType):
        return f"{holder.__qualname__}.<locals>" if is_users_module(holder.__module__ or "") else None
    kind = type(holder)
    if not is_users_module(kind.__module__) or isinstance(holder, type):
        return None
    for key, value in [*getattr(holder, "__dict__", {}).items(), *_slots_of(holder)]:
        if id(value) in targets:
            return f"{kind.__name__}.{key}"
    return kind.__name__


def _slots_of(holder: Any) -> list:
    names = [name for kind in type(holder).__mro__ for name in _as_tuple(getattr(kind, "__slots__", ()))]
    return [(name, getattr(holder, name, None)) for name in names if name not in ("__dict__", "__weakref__")]


def _as_tuple(slots: Any) -> tuple:
    return (slots,) if isinstance(slots, str) else tuple(slots)

"""custom_op_namespaces: operators of torch.ops.{namespace}, which extensions may register at any time."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch


class OperatorFinder:
    """Finds each operator of the namespaces once."""

    def __init__(self) -> None:
        self._known: set = set()

    def all_ops(self, namespaces: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
        """(namespace, operator, its packet) of all that are registered now; takes tens of milliseconds."""
        wanted = frozenset(namespaces)
        names = (schema.name.partition("::") for schema in torch._C._jit_get_all_schemas())
        yield from self._new((space, name) for space, _, name in names if space in wanted)

    def used_ops(self, namespaces: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
        """Those of them that something has asked for meanwhile; a namespace keeps its operators once asked for."""
        spaces = [space for space in namespaces if space in vars(torch.ops)]
        yield from self._new((space, name) for space in spaces for name in list(vars(getattr(torch.ops, space))))

    def forget(self, namespace: str) -> None:
        """Its operators are found again when somebody asks for them."""
        self._known = {known for known in self._known if known[0] != namespace}

    def _new(self, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, Any]]:
        for space, name in names:
            if (space, name) in self._known:
                continue
            packet = getattr(getattr(torch.ops, space), name, None)
            if is_packet(packet):
                self._known.add((space, name))
                yield space, name, packet


class ForeignOps:
    """Finds each operator that was registered in Python, and not by PyTorch itself, once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def new(self) -> Iterator[tuple[str, str, Any]]:
        """(namespace, operator, its packet) of those that were registered since the last call."""
        names = set(getattr(torch.library, "_defs", ())) - self._known
        self._known |= names
        for name in sorted(names):
            space, _, operator = name.partition("::")
            if not _is_of_torch(name):
                packet = getattr(getattr(torch.ops, space), operator.partition(".")[0], None)
                if is_packet(packet):
                    yield space, packet.__name__, packet

    def forget(self, namespace: str) -> None:
        """Its operators are found again."""
        self._known = {name for name in self._known if not name.startswith(f"{namespace}::")}


_TORCH = os.path.dirname(torch.__file__) + os.sep


def _is_of_torch(name: str) -> bool:
    """Whether the function behind the operator, or the code that registered it, is in PyTorch."""
    made = _made_of(name)
    if made is not None:
        return made.__module__.partition(".")[0] == "torch"
    try:
        text = torch._C._dispatch_dump(name)
    except RuntimeError:  # gone meanwhile
        return True
    return f"registered at {_TORCH}" in text.partition("alias analysis")[0]


def _made_of(name: str) -> Any:
    """The function that torch.library.custom_op was given; None for operators that were defined in another way."""
    made = getattr(getattr(torch, "_library", None), "custom_ops", None)
    return getattr(getattr(made, "OPDEFS", {}).get(name), "_init_fn", None)


def is_packet(value: Any) -> bool:
    """Tells whether it is an operator of torch.ops (all its overloads)."""
    return isinstance(value, torch._ops.OpOverloadPacket)

"""custom_op_namespaces: operators of torch.ops.{namespace}, which extensions may register at any time."""

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


def is_packet(value: Any) -> bool:
    """Tells whether it is an operator of torch.ops (all its overloads)."""
    return isinstance(value, torch._ops.OpOverloadPacket)

"""What the nodes of an FX graph write in place: Inductor puts such nodes into the graphs that it compiles."""

import functools
from typing import Any, NamedTuple

import torch


class Changes(NamedTuple):
    """The nodes of a graph that write into the value of another one."""

    by_name: dict  # name -> node
    place: dict  # node -> place in the order of the graph
    memory: dict  # node -> the node whose memory its value is in
    writes: dict  # node that has memory -> nodes that write there, in the order of the graph

    def before(self, node: torch.fx.Node, reader: int, known: Any) -> list:
        """The nodes that have written into a value when it is read.

        Args:
            node: Whose value it is.
            reader: Place of what reads it.
            known: Names of nodes whose values are known, which are those after all writes.

        Returns:
            The nodes.
        """
        memory = self.memory[node]
        if memory.name in known:
            return []
        return [one for one in self.writes.get(memory, ()) if one is not node and self.place[one] < reader]

    def is_written(self, node: torch.fx.Node) -> bool:
        """Whether something writes into the memory of a value."""
        return self.memory[node] in self.writes

    def is_changed_between(self, name: str) -> bool:
        """Whether a node is read both before and after something writes into it: it has no one value."""
        node = self.by_name[name]
        writes = self.writes.get(self.memory[node], ())
        return (
            bool(writes)
            and any(self.place[reader] > self.place[writes[0]] for reader in node.users)
            and node not in writes
        )

    def written_names(self) -> set:
        """Names of the nodes whose memory something writes into."""
        return {name for name, node in self.by_name.items() if self.is_written(node)}


def _aliased(node: torch.fx.Node, write: bool) -> list:
    """The arguments that the value of a node is a view of; or those that it writes."""
    found = []
    for at, argument in enumerate(getattr(getattr(node.target, "_schema", None), "arguments", ())):
        value = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info is not None and isinstance(value, torch.fx.Node):
            if argument.alias_info.is_write or not write:
                found.append(value)
    return found


@functools.lru_cache(maxsize=8)
def changes_of(graph: torch.fx.Graph) -> Changes:
    """Reads a graph.

    Args:
        graph: The graph, which does not change any more.

    Returns:
        What its nodes write.
    """
    found = Changes({}, {}, {}, {})
    for at, node in enumerate(graph.nodes):
        found.by_name[node.name], found.place[node] = node, at
        source = next(iter(_aliased(node, write=False)), node)
        if source is node and getattr(node.target, "__name__", "") == "getitem" and node.args:
            listed = node.args[0]  # of what is split, say
            source = listed if found.memory[listed] is not listed else node
        found.memory[node] = found.memory.get(source, node)
        for written in _aliased(node, write=True):
            found.writes.setdefault(found.memory[written], []).append(node)
    return found

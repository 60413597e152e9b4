"""The value of an FX node, from the values that a compiled kernel got: in the dtypes of the graph, and in float64."""

from typing import Any, Optional

import torch

from .changes import changes_of
from .rounding import moved

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class Draws(Exception):
    """The value depends on random numbers."""


def needed(graph: torch.fx.Graph, wanted: str, known: Any, changed: bool = True) -> list:
    """The nodes that have to be computed for a node, in the order of the graph.

    Args:
        graph: The graph.
        wanted: Name of the node.
        known: Names of nodes that are not computed.
        changed: Whether its value is that after everything that the graph writes into it.

    Returns:
        The nodes, also those that write into what is needed.
    """
    changes = changes_of(graph)
    last = len(changes.place) if changed else -1
    todo, marked = [(changes.by_name[wanted], last)], set()
    while todo:
        node, reader = todo.pop()
        if node.name not in known:
            writes = changes.before(node, reader, known)
            todo.extend((write, changes.place[write]) for write in writes if write.name not in marked)
        if node.name in marked or node.name in known:
            continue
        marked.add(node.name)
        todo.extend((source, changes.place[node]) for source in node.all_input_nodes)
    return [node for node in graph.nodes if node.name in marked]


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in _FLOATS else value
    return torch.float64 if value in _FLOATS else value


def value_of(
    module: torch.fx.GraphModule,
    wanted: str,
    known: dict,
    wide: bool = False,
    generator: Optional[torch.Generator] = None,
    changed: bool = True,
) -> torch.Tensor:
    """Computes a node.

    Args:
        module: The graph.
        wanted: Name of the node.
        known: {name: value} of nodes that are not computed.
        wide: Whether to compute in float64.
        generator: Moves the result of each node by a rounding error of its dtype, up or down.
        changed: Whether the value is that after everything that the graph writes into it.

    Returns:
        The value.

    Raises:
        Draws: It depends on random numbers.
        KeyError: An input of the graph is not known.
    """
    changes = changes_of(module.graph)
    env = {name: _widened(value) if wide else value for name, value in known.items()}
    for name in changes.written_names() & env.keys():
        env[name] = env[name].clone()  # the others are needed again as they are

    def look_up(node: torch.fx.Node) -> Any:
        return env[node.name]

    for node in needed(module.graph, wanted, known, changed):
        target = str(node.target)
        if node.op == "get_attr":
            env[node.name] = _widened(getattr(module, target)) if wide else getattr(module, target)
            continue
        if node.op != "call_function":
            raise KeyError(node.name)
        if "random" in target or "rand" in target or "seed" in target or "dropout" in target or "bernoulli" in target:
            raise Draws(node.name)
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), look_up)
        if wide:  # arguments for their dtypes; what is made of none of float64, such as zeros, for itself
            args, kwargs = torch.utils._pytree.tree_map(_widened, (args, kwargs))
        value = node.target(*args, **kwargs)
        if wide:
            value = torch.utils._pytree.tree_map(_widened, value)
        if generator is not None:
            rounded = moved(node, args, value, generator)
            # What is written in place stays in its memory, which others are views of.
            value = value.copy_(rounded) if rounded is not value and changes.is_written(node) else rounded
        env[node.name] = value
    return env[wanted]

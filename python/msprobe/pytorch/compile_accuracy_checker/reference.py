"""The value of an FX node, from the values that a compiled kernel got: in the dtypes of the graph, and in float64."""

from typing import Any, Optional

import torch

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class Draws(Exception):
    """The value depends on random numbers."""


def needed(graph: torch.fx.Graph, wanted: str, known: Any) -> list:
    """The nodes that have to be computed for a node, in the order of the graph."""
    by_name = {node.name: node for node in graph.nodes}
    todo, marked = [by_name[wanted]], set()
    while todo:
        node = todo.pop()
        if node.name in marked or node.name in known:
            continue
        marked.add(node.name)
        todo.extend(node.all_input_nodes)
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
) -> torch.Tensor:
    """Computes a node.

    Args:
        module: The graph.
        wanted: Name of the node.
        known: {name: value} of nodes that are not computed.
        wide: Whether to compute in float64.
        generator: Moves the result of each node by a rounding error of its dtype, up or down.

    Returns:
        The value.

    Raises:
        Draws: It depends on random numbers.
        KeyError: An input of the graph is not known.
    """
    env = {name: _widened(value) if wide else value for name, value in known.items()}

    def look_up(node: torch.fx.Node) -> Any:
        return env[node.name]

    for node in needed(module.graph, wanted, known):
        target = str(node.target)
        if node.op == "get_attr":
            env[node.name] = _widened(getattr(module, target)) if wide else getattr(module, target)
            continue
        if node.op != "call_function":
            raise KeyError(node.name)
        if "random" in target or "rand" in target or "seed" in target or "dropout" in target or "bernoulli" in target:
            raise Draws(node.name)
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), look_up)
        if wide:
            args, kwargs = torch.utils._pytree.tree_map(_widened, (args, kwargs))
        if target.endswith("copy_.default"):
            env[node.name] = args[1].clone()
            continue
        args, kwargs = _not_in_place(node.target, args, kwargs)
        env[node.name] = _moved(node, node.target(*args, **kwargs), generator)
    return env[wanted]


def _not_in_place(target: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments, with copies of those that the function writes: the others are needed again as they are."""
    written = [arg.name for arg in getattr(getattr(target, "_schema", None), "arguments", ()) if _writes(arg)]
    if not written:
        return args, kwargs
    names = [arg.name for arg in target._schema.arguments]
    copied = tuple(value.clone() if name in written else value for name, value in zip(names, args))
    return copied, {name: value.clone() if name in written else value for name, value in kwargs.items()}


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _moved(node: torch.fx.Node, value: Any, generator: Optional[torch.Generator]) -> Any:
    shown = node.meta.get("val")
    if generator is None or not isinstance(value, torch.Tensor) or not isinstance(shown, torch.Tensor):
        return value
    if shown.dtype not in (*_FLOATS, torch.float64) or value.dtype != torch.float64:
        return value
    signs = torch.randint(0, 2, value.shape, generator=generator, dtype=torch.int8).double() * 2 - 1
    return value * (1 + signs * torch.finfo(shown.dtype).eps / 2)

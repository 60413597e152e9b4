"""The nodes of a kernel by themselves: compiled alone, and as a script that shows a wrong result."""

import os
import subprocess
import sys
from collections.abc import Callable

import torch

from .adapter import compiled_anew
from .reference import needed

_SCRIPT = '''"""{nodes}: what Inductor compiles is further from float64 than rounding explains.

usage: python {name}.py      (exit code 1: it still is; the inputs are in {name}.pt)
"""

import os
import sys

import torch
from torch import device, inf, nan
from torch._functorch import config as functorch
from torch._inductor import config

{code}

def main():
    saved = torch.load(os.path.splitext(os.path.abspath(__file__))[0] + ".pt", weights_only=True)
    anew = config.patch(fx_graph_cache=False, fx_graph_remote_cache=False), functorch.patch(enable_autograd_cache=False)
    with anew[0], anew[1], torch.no_grad():
        compiled = torch.compile(function, dynamic=False)(*(x.clone() for x in saved["inputs"]))
    apart = ((compiled.double() - saved["truth"]).abs() / saved["bound"]).max().item()
    print(f"distance from float64: {{apart:.3g}} times what rounding explains; eager: ", end="")
    print(f"{{((function(*saved['inputs']).double() - saved['truth']).abs() / saved['bound']).max().item():.3g}}")
    sys.exit(0 if apart <= 1 else 1)


if __name__ == "__main__":
    main()
'''


def _alone(module: torch.fx.GraphModule, wanted: str, known: dict, changed: bool) -> tuple[torch.fx.Graph, list]:
    """A graph that computes one node, and the names of its inputs."""
    graph, made, inputs = torch.fx.Graph(), {}, []
    nodes = needed(module.graph, wanted, known, changed)
    used = {source.name for node in nodes for source in node.all_input_nodes}
    for node in module.graph.nodes:
        if node.name in used and node.name in known:
            made[node] = graph.placeholder(node.name)
            inputs.append(node.name)
    for node in nodes:
        if node.op != "call_function":
            raise KeyError(node.name)
        made[node] = graph.node_copy(node, lambda source: made[source])
    graph.output(next(copy for node, copy in made.items() if node.name == wanted))
    return graph, inputs


def compiled_alone(module: torch.fx.GraphModule, wanted: str, known: dict) -> torch.Tensor:
    """Computes a node as Inductor compiles it by itself.

    Args:
        module: The graph.
        wanted: Name of the node.
        known: {name: value} of the nodes that it needs.

    Returns:
        The value.

    Raises:
        KeyError: It needs another value.
    """
    graph, inputs = _alone(module, wanted, known, changed=False)
    with compiled_anew(), torch.no_grad():
        function = torch.compile(torch.fx.GraphModule(module, graph), dynamic=False)
        return function(*(known[name].clone() for name in inputs))  # what it writes is not ours


def failing_script(
    folder: str, name: str, module: torch.fx.GraphModule, wanted: str, known: dict, truths: list, bound_of: Callable
) -> str:
    """Writes a script that compiles the nodes of a result and compares with float64, and runs it in a fresh process.

    Args:
        folder: Its directory.
        name: Its name without `.py`.
        module: The graph.
        wanted: Name of the node whose value is wrong.
        known: {name: value} of the nodes that it needs.
        truths: The value in float64, then with rounding errors put in.
        bound_of: How far rounding goes, of truths and a dtype.

    Returns:
        The path of the script if it fails; else an empty text, and no file is left.
    """
    graph, inputs = _alone(module, wanted, known, changed=True)
    code = torch.fx.GraphModule(module, graph).code.strip().replace("def forward(self, ", "def function(", 1)
    shown = next(node.meta["val"] for node in module.graph.nodes if node.name == wanted)
    bound = bound_of(truths, shown.dtype)
    os.makedirs(folder, exist_ok=True)
    path, data = os.path.join(folder, f"{name}.py"), os.path.join(folder, f"{name}.pt")
    torch.save({"inputs": [known[n].detach().clone() for n in inputs], "truth": truths[0], "bound": bound}, data)
    with open(path, "w", encoding="utf-8") as file:
        nodes = ", ".join(node.name for node in graph.nodes if node.op == "call_function")
        file.write(_SCRIPT.format(nodes=nodes, name=name, code=code))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 1 and done.stdout.startswith("distance"):
        return path
    for left in (path, data):
        os.remove(left)
    return ""

"""What is asked of the inside of Inductor, which changes with every release of PyTorch: the one place that knows it."""

import ast
import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

import torch

from ..._capture.errors import MsprobeException

KNOWN = ((2, 13),)  # releases of PyTorch whose Inductor looks as this file says


class KernelCall(NamedTuple):
    """A call of a kernel in the generated code, in the order of its lines."""

    kernel: str
    generated: bool  # by Inductor; others are those of a library
    names: tuple  # of all arguments: buffers and inputs of the graph, "" for other values
    outputs: tuple  # of those that it writes


class Seen(NamedTuple):
    """A call as it was made."""

    call: KernelCall
    before: dict  # name -> tensor
    after: dict  # of what it writes


class CompiledGraph:
    """A graph that Inductor compiled, and what its code computed."""

    def __init__(self, lowering: Any, module: Any) -> None:
        """Reads the generated code and puts recorders in the places of its kernels."""
        self.fx: torch.fx.GraphModule = lowering.module
        self.backward: bool = bool(getattr(lowering, "is_backward", False))
        self.node_of: dict[str, str] = {}  # buffer -> FX node whose value it holds
        self.nodes_of: dict[str, tuple] = {}  # buffer -> FX nodes that are computed for it
        for buffer in lowering.buffers:
            node = buffer.get_origin_node()
            if node is not None:
                self.node_of[buffer.get_name()] = node.name
            origins = sorted(getattr(buffer, "origins", None) or (), key=lambda n: n.name)
            self.nodes_of[buffer.get_name()] = tuple(n.name for n in origins)
        self.inputs: dict[str, Any] = {}
        self.seen: list[Seen] = []
        self._input_names = list(lowering.graph_input_names)
        with open(module.__file__, encoding="utf-8") as file:
            self.calls = calls_in(file.read())
        self._at = 0
        self._instrument(module)

    def _instrument(self, module: Any) -> None:
        for name in {call.kernel for call in self.calls if call.generated}:
            setattr(module, name, self._recorder(name, getattr(module, name)))
        if hasattr(module, "extern_kernels"):
            module.extern_kernels = _Externs(self, module.extern_kernels)
        inner = module.call

        def call(args: list) -> Any:
            self._at = 0
            self.seen.clear()
            self.inputs = {name: _copy(value) for name, value in zip(self._input_names, args)}
            return inner(args)

        module.call = call

    def _recorder(self, name: str, kernel: Any) -> Any:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            call = self._next(name)
            if call is None:
                return kernel(*args, **kwargs)
            values = (*args, *kwargs.values())
            before = {n: _copy(v) for n, v in zip(call.names, values) if n and isinstance(v, torch.Tensor)}
            result = kernel(*args, **kwargs)
            written = {n: v for n, v in zip(call.names, values) if n in call.outputs and isinstance(v, torch.Tensor)}
            self.seen.append(Seen(call, before, {n: _copy(v) for n, v in written.items()}))
            return result

        return recorded

    def _next(self, kernel: str) -> Optional[KernelCall]:
        while self._at < len(self.calls):
            call = self.calls[self._at]
            self._at += 1
            if call.kernel == kernel:
                return call
        return None


class _Externs:
    """In the place of the library kernels of a module."""

    def __init__(self, graph: CompiledGraph, real: Any) -> None:
        self._graph, self._real = graph, real

    def __getattr__(self, name: str) -> Any:
        return self._graph._recorder(f"extern_kernels.{name}", getattr(self._real, name))


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _name_of(node: ast.AST) -> str:
    """The buffer of an argument, also of `reinterpret_tensor(buf0, ...)`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reinterpret_tensor" and node.args:
        return _name_of(node.args[0])
    return ""


def calls_in(source: str) -> list[KernelCall]:
    """Finds the calls of kernels in generated code.

    Args:
        source: The text of the module that Inductor wrote.

    Returns:
        The calls in the order of their lines.
    """
    tree = ast.parse(source)
    written: dict[str, list] = {}  # kernel -> whether each argument is written
    for node in ast.walk(tree):
        made = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
        if made is not None and getattr(made.func, "attr", "") == "cpp_pybinding":
            types = ast.literal_eval(made.args[0])
            written[node.targets[0].id] = ["*" in kind and not kind.startswith("const ") for kind in types]
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        names = [_name_of(value) for value in (*node.args, *(k.value for k in node.keywords))]
        name = getattr(node.func, "id", "")
        if name in written:
            outputs = tuple(n for n, out in zip(names, written[name]) if out and n)
            found.append((node.lineno, KernelCall(name, True, tuple(names), outputs)))
        elif getattr(getattr(node.func, "value", None), "id", "") == "extern_kernels":
            outputs = tuple(_name_of(k.value) for k in node.keywords if k.arg == "out")
            found.append((node.lineno, KernelCall(f"extern_kernels.{node.func.attr}", False, tuple(names), outputs)))
    return [call for _, call in sorted(found, key=lambda pair: pair[0])]


def check_release() -> None:
    """Refuses releases of PyTorch whose Inductor is not known.

    Raises:
        MsprobeException: This release is none of KNOWN, or its Inductor lacks what is needed.
    """
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release not in KNOWN:
        known = ", ".join(f"{major}.{minor}" for major, minor in KNOWN)
        text = f"check_kernels knows the kernels of PyTorch {known}, this is {torch.__version__}; PrecisionChecker works with every release"
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


# Graphs are compiled anew; what the C++ compiler made of the same text is taken again, and the header that it compiles first.
_ANEW = {"force_disable_caches": False, "fx_graph_cache": False, "fx_graph_remote_cache": False}


@contextlib.contextmanager
def compiled_anew() -> Iterator[None]:
    """Lets torch.compile look up no graph that it has compiled before, until the end of the block."""
    from torch._functorch import config as functorch
    from torch._inductor import config
    from torch._inductor.codecache import PyCodeCache

    PyCodeCache.cache_clear()  # a module that recorders were put into is not used again
    with config.patch(_ANEW), functorch.patch(enable_autograd_cache=False, bundled_autograd_cache=False):
        torch._dynamo.reset()
        try:
            yield
        finally:
            torch._dynamo.reset()
            PyCodeCache.cache_clear()


@contextlib.contextmanager
def recording() -> Iterator[list[CompiledGraph]]:
    """Collects the graphs that Inductor compiles, until the end of the block; their recorders stay in them."""
    check_release()
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    graphs: list[CompiledGraph] = []
    compile_to_module = GraphLowering.compile_to_module

    def compile_and_keep(lowering: Any) -> Any:
        module = compile_to_module(lowering)
        graphs.append(CompiledGraph(lowering, module))
        return module

    GraphLowering.compile_to_module = compile_and_keep
    try:
        with compiled_anew(), config.patch(cpp_wrapper=False):
            yield graphs
    finally:
        GraphLowering.compile_to_module = compile_to_module

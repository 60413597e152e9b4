"""What is asked of the inside of Inductor, which changes with every release of PyTorch: the one place that knows it."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

import torch

from ..._capture.errors import MsprobeException
from .generated import Generated, KernelCall

KNOWN = ((2, 13),)  # releases of PyTorch whose Inductor looks as this file says


class Seen(NamedTuple):
    """A call as it was made."""

    call: KernelCall
    before: dict  # buffer -> the value that it held, of what the call reads
    after: dict  # buffer -> the value that it holds, of what the call writes


class Layout(NamedTuple):
    """Where the elements of a buffer are in its memory."""

    size: tuple
    stride: tuple
    dtype: torch.dtype

    def of(self, value: torch.Tensor) -> torch.Tensor:
        """The value with its elements in these places."""
        laid = torch.empty_strided(self.size, self.stride, dtype=value.dtype, device=value.device)
        return laid.copy_(value)

    def part(self, value: torch.Tensor, offset: int) -> torch.Tensor:
        """What is in these places of the memory of a value."""
        return value.detach().as_strided(self.size, self.stride, value.storage_offset() + offset)


class CompiledGraph:
    """A graph that Inductor compiled, and what its code computed."""

    def __init__(self, lowering: Any, module: Any) -> None:
        """Reads the generated code and puts recorders in the places of its kernels."""
        self.fx: torch.fx.GraphModule = lowering.module
        self.backward: bool = bool(getattr(lowering, "is_backward", False))
        self.node_of: dict[str, str] = {}  # buffer -> FX node whose value it holds
        self.nodes_of: dict[str, tuple] = {}  # buffer -> FX nodes that are computed for it
        self.layout_of: dict[str, Layout] = {}
        for buffer in lowering.buffers:
            self._describe(buffer)
        self.argument_of: dict[str, str] = {}  # buffer -> FX node of a library's kernel that it is made for
        self._find_arguments(lowering.buffers)
        self.returned: dict[str, tuple] = {}  # buffer -> FX node that the graph returns out of it, and its places
        self._find_returned(lowering.graph_outputs)
        for node in self.fx.graph.nodes:
            if str(node.target) == "aten.copy_.default" and node.args[0].op == "placeholder":
                self.node_of[node.args[0].name] = node.name  # what an input is changed to
        self.inputs: dict[str, Any] = {}
        self.seen: list[Seen] = []
        self._input_names = list(lowering.graph_input_names)
        with open(module.__file__, encoding="utf-8") as file:
            self.code = Generated(file.read(), frozenset(lowering.mutated_buffers), _reads(lowering))
        self._at = 0
        self._instrument(module)

    def _describe(self, buffer: Any) -> None:
        name, node = buffer.get_name(), buffer.get_origin_node()
        if node is not None:
            self.node_of[name] = node.name
        origins = sorted(getattr(buffer, "origins", None) or (), key=lambda n: n.name)
        self.nodes_of[name] = tuple(n.name for n in origins)
        if layout := _layout(buffer.layout):
            self.layout_of[name] = layout

    def _find_arguments(self, buffers: list) -> None:
        """Of what is written to be an argument of a library's kernel, which is no value of an FX node of its own."""
        from torch._inductor import ir

        order = {node.name: at for at, node in enumerate(self.fx.graph.nodes)}
        last = {name: max(nodes, key=lambda n: order.get(n, -1)) for name, nodes in self.nodes_of.items() if nodes}
        libraries = {
            last.get(buffer.get_name())
            for buffer in buffers
            if isinstance(buffer, ir.ExternKernel) and not isinstance(buffer, ir.NopKernel)
        }
        made = {buffer.get_name() for buffer in buffers if isinstance(buffer, ir.ComputedBuffer)}
        self.argument_of = {name: node for name, node in last.items() if name in made and node in libraries}

    def _find_returned(self, outputs: list) -> None:
        (output,) = (node for node in self.fx.graph.nodes if node.op == "output")
        for node, value in zip(output.args[0], outputs):
            name = value.get_name() if isinstance(node, torch.fx.Node) else ""
            layout = _layout(value.get_output_spec()) if name in self.layout_of else None
            if layout and value.get_layout().offset == 0:
                self.returned[name] = node.name, layout

    def _instrument(self, module: Any) -> None:
        for name in {call.kernel for call in self.code.calls if call.generated}:
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
            places = [
                (n, value, offset)
                for n, value, offset in zip(call.names, values, call.offsets)
                if n and isinstance(value, torch.Tensor)
            ]
            before = self._read(call, places)
            result = kernel(*args, **kwargs)
            self.seen.append(Seen(call, before, {n: _copy(v) for n, v, _ in places if n in call.outputs}))
            return result

        return recorded

    def _read(self, call: KernelCall, places: list) -> dict:
        """The buffers whose values a call gets, each as a whole."""
        read = {}
        for name, value, offset in places:
            held = name
            if name in call.outputs:
                held = self.code.before(name, call.line) if name in call.updated else ""
            for one in (held, *self.code.parts_of(name)):
                layout = self.layout_of.get(one)
                if layout and layout.dtype == value.dtype and self.code.holds(one, call.line):
                    place = self.code.parts[one].offset if one != held else 0
                    read[one] = _copy(layout.part(value, place - offset))
        return read

    def _next(self, kernel: str) -> Optional[KernelCall]:
        while self._at < len(self.code.calls):
            call = self.code.calls[self._at]
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


def _layout(found: Any) -> Optional[Layout]:
    """A layout of Inductor, where it is one of known lengths."""
    from torch._inductor import ir

    if not isinstance(found, ir.Layout) or not all(str(n).isdigit() for n in (*found.size, *found.stride)):
        return None
    return Layout(tuple(map(int, found.size)), tuple(map(int, found.stride)), found.dtype)


def _reads(lowering: Any) -> dict:
    """{buffer: names of the buffers that it is computed from}."""
    found = {}
    for operation in lowering.operations:
        for made in operation.get_outputs():
            found[made.get_name()] = set(operation.get_read_names())
    return found


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


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

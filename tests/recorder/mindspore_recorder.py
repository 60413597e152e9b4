"""Records what the Cells of a MindSpore network see, by Cell hooks and parameter hooks, without msprobe.

`watch` has forward hooks and hooks of parameters; `split` also Cell.register_backward_hook(), which puts operators around each
Cell, so that the gradient of an argument is this call's, and sums may be made in another order.
"""

import zlib
from collections import Counter, defaultdict

import mindspore as ms
import numpy as np
from plain_figures import figures_of


def item(value, depth=0):
    if isinstance(value, ms.Tensor):
        return _tensor_item(value)
    if value is None or depth > 20:
        return None if value is None else {"any": "deep"}
    if type(value) in (bool, int, float, str):
        return {"value": value}
    if isinstance(value, dict):
        return {"dict": {str(k): item(v, depth + 1) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return [item(v, depth + 1) for v in value]
    return {"any": type(value).__name__}


def elements(tensor):
    """A copy of the elements: asnumpy() may hand out the memory itself."""
    return np.array(tensor.asnumpy(), copy=True)


def _tensor_item(tensor):
    values = elements(tensor)
    found = {"tensor": True, "dtype": str(tensor.dtype), "shape": list(tensor.shape), "requires_grad": None}
    wide = values.astype(np.float64) if values.dtype.kind == "V" or values.dtype.name == "bfloat16" else values
    found.update(figures_of(wide.reshape(-1), len(tensor.shape) == 0))
    found["crc"] = f"{zlib.crc32(values.tobytes()):08x}" if found["Max"] is not None else None
    return found


def tensors_of(value):
    if isinstance(value, ms.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


class Recorder:
    """`begin(net)` and `end()` around each step; the last hooks that a Cell has are the outermost."""

    def __init__(self, way):
        self.way, self.steps, self._handles = way, [], []

    def begin(self, net):
        self._entries, self._calls = [], Counter()
        self._fired, self._grads = defaultdict(Counter), {}
        self._open = defaultdict(list)
        self._backward = defaultdict(list)
        self.steps.append(self._entries)
        names = {}
        for path, cell in net.cells_and_names():
            if cell is not net and id(cell) not in names:
                names[id(cell)] = f"Cell.{path}.{type(cell).__name__}"
                self._watch(cell, names[id(cell)])

    def end(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _watch(self, cell, name):
        keep = self._handles.append
        keep(
            cell.register_forward_pre_hook(
                lambda c, args, kwargs: self._before(c, name, args, kwargs), with_kwargs=True
            )
        )
        keep(cell.register_forward_hook(lambda c, args, kwargs, out: self._after(c, name, out), with_kwargs=True))
        if self.way == "split":
            keep(cell.register_backward_hook(lambda c, given, got: self._gradients(name, given, got)))
        for parameter in cell.get_parameters(expand=False):
            if parameter.requires_grad:
                keep(parameter.register_hook(lambda g, p=parameter: self._parameter(name, cell, p, g)))

    def _before(self, cell, name, args, kwargs):
        number = self._calls[name]
        self._calls[name] += 1
        entry = {"input_args": item(list(args)), "input_kwargs": item(dict(kwargs))["dict"]}
        self._open[name].append((number, entry, len(tensors_of(args))))

    def _after(self, cell, name, output):
        number, entry, positional = self._open[name].pop()
        entry["output"] = item(list(output) if isinstance(output, tuple) else [output])
        entry["parameters"] = {p.name.split(".")[-1]: item(p) for p in cell.get_parameters(expand=False)}
        self._entries.append((f"{name}.forward.{number}", entry))
        self._backward[name].append((number, positional))

    def _gradients(self, name, given, got):
        """Backward passes meet the calls of a Cell in the reverse order."""
        number, positional = self._backward[name].pop()
        given = [given] if isinstance(given, ms.Tensor) else list(given)
        got = [got] if isinstance(got, ms.Tensor) else list(got)
        entry = {"input": item(got), "output": item(given), "sides": {"positional": positional}}
        self._entries.append((f"{name}.backward.{number}", entry))

    def _parameter(self, name, cell, parameter, gradient):
        short = parameter.name.split(".")[-1]
        number = self._fired[id(cell)][short]
        self._fired[id(cell)][short] += 1
        key = (id(cell), number)
        if key not in self._grads:
            self._grads[key] = {"gradients": {}}
            self._entries.append((f"{name}.parameters_grad.{number}", self._grads[key]))
        self._grads[key]["gradients"][short] = [item(gradient)]

"""What may change a tensor where it lies: what was recorded of tensors and not read yet is read before it runs.

MindSpore counts no versions of tensors, so that a change cannot be seen afterwards. Derived from the installed release:
methods and functions whose names say that they write, the classes of Primitives that declare it, norms, which change their
running means without saying so, operators of the user, and everything that hands out or exchanges the memory of a tensor.
"""

import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import _core


class Site(NamedTuple):
    """An attribute that is exchanged while a step is recorded; `stand_in`: what takes its place, without calls to see."""

    owner: Any
    attr: str
    stand_in: Any = None


_MEMORY = (
    "_load _offload _shared_host_memory_with_device_ _update_data asnumpy assign_value assign_value_cpp copy_ init_data "
    "itemset numpy set_data set_device_address set_dtype storage untyped_storage"
).split()
_NORMS = ("batch_norm", "instance_norm", "sync_batch_norm")
_NO_WRITES = frozenset(
    "is_ print_ requires_grad_ reshape_ scatter_nd scatter_tensor scatter_object_list shape_".split()
)
_PREFIXES = ("assign", "inplace_", "scatter_")


def write_sites(mindspore: Any) -> Iterator[Site]:
    """Yields what may change tensors, Primitives left out."""
    tensor = mindspore.Tensor
    for name in dir(tensor):
        if not callable(getattr(tensor, name, None)):
            continue
        in_place = name.startswith("__i") and hasattr(tensor, f"__{name[3:]}")
        if in_place or name in _MEMORY or name == "__setitem__" or (name[0] != "_" and _writes(name)):
            yield Site(tensor, name)
    for name in ("init_data", "set_data"):
        yield Site(mindspore.Parameter, name)
    data = getattr(tensor, "data", None)
    if hasattr(data, "__set__"):
        yield Site(tensor, "data", _reading_before_it_is_set(data))
    for module in (mindspore.ops, mindspore.mint, mindspore.mint.nn.functional):
        for name, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and (name in _NORMS or _writes(name)):
                yield Site(module, name)
    executor = getattr(getattr(mindspore.common, "api", None), "_cell_graph_executor", None)
    if executor is not None and "__call__" in vars(type(executor)):
        yield Site(type(executor), "__call__")


def writing_primitives(mindspore: Any) -> Iterator[type]:
    """Yields the classes of Primitives that may change their arguments."""
    waiting, seen = [mindspore.ops.Primitive], set()
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind not in seen:
                seen.add(kind)
                waiting.append(kind)
                if _is_writing(kind):
                    yield kind


def _writes(name: str) -> bool:
    if name in _NO_WRITES:
        return False
    return (name.endswith("_") and not name.startswith("_")) or name.startswith(_PREFIXES)


def _is_writing(kind: type) -> bool:
    name = kind.__name__
    if name.endswith(("Grad", "View")):
        return False
    by_name = name.startswith("Inplace") or "BatchNorm" in name or "InstanceNorm" in name or name == "Custom"
    return by_name or "side_effect_mem" in _constants(vars(kind).get("__init__"))


def _constants(function: Any) -> Iterable[Any]:
    """Returns the constants of a constructor, also below a decorator."""
    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            return _constants(cell.cell_contents)
    code = getattr(function, "__code__", None)
    return code.co_consts if code is not None else ()


def _reading_before_it_is_set(descriptor: Any) -> property:
    def put(tensor: Any, value: Any) -> None:
        _core.read_tensors()
        descriptor.__set__(tensor, value)

    return property(descriptor.__get__, put)

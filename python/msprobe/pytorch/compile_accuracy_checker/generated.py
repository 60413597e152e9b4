"""What the text of a module that Inductor wrote says: which kernels it calls, and what is in its buffers when."""

import ast
import re
from typing import NamedTuple, Optional

_PARAMETERS = re.compile(r"\bkernel\(([^)]*)\)")


class KernelCall(NamedTuple):
    """A call of a kernel, in the order of the lines."""

    kernel: str
    generated: bool  # by Inductor; others are those of a library
    names: tuple  # of all arguments: buffers and inputs of the graph, "" for other values
    outputs: tuple  # of those that it writes
    offsets: tuple = ()  # of all arguments: where the argument begins in its buffer, in elements
    updated: tuple = ()  # of the outputs: those that it reads before
    line: int = 0


class Part(NamedTuple):
    """A buffer that is a part of another one, such as an input of a concatenation."""

    whole: str
    offset: int  # in elements


class Generated:
    """The calls of a module, and which of its buffers hold their values before and after a line."""

    def __init__(self, source: str, changed: frozenset = frozenset(), reads: Optional[dict] = None) -> None:
        """Reads the text.

        Args:
            source: The text of the module.
            changed: Names of buffers whose values are replaced after they were written first.
            reads: {buffer: names of those that it is computed from}.
        """
        tree = ast.parse(source)
        self.calls: list[KernelCall] = _calls(tree)
        self.parts: dict[str, Part] = {}
        self._in_place_of: dict[str, str] = {}  # a buffer in the memory of one that is not needed any more
        self._empty: set[str] = set()  # has no value until something writes it
        self._changed = changed
        self._writes: dict[str, list] = {}
        self._sources = reads or {}
        self._last: dict[str, int] = {}  # the last line that has the name
        for call in self.calls:
            for name in call.outputs:
                self._writes.setdefault(name, []).append(call.line)
        self._read_statements(tree, source.splitlines())

    def _read_statements(self, tree: ast.AST, lines: list) -> None:
        calls, memory = {(call.kernel, call.line) for call in self.calls}, set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                if (_kernel_of(node.value), node.lineno) not in calls:
                    self._other_write(node.value)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, (source, offset) = node.targets[0].id, _place_of(node.value)
                said = lines[node.lineno - 1].rpartition("#")[2].strip()
                if said == "alias" and source:
                    self.parts[name] = Part(source, offset)
                elif said == "reuse" and source:
                    self._in_place_of[name] = source
                    memory.add((source, node.lineno))
                elif not isinstance(node.value, ast.Call) or "empty_strided" not in _kernel_of(node.value):
                    continue
                self._empty.add(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and (node.id, node.lineno) not in memory:
                self._last[node.id] = max(node.lineno, self._last.get(node.id, 0))

    def _other_write(self, call: ast.Call) -> None:
        """A statement such as `aten.index_put_(buf0, ...)`, `buf0.copy_(...)` or `f(..., out=buf0)`."""
        for keyword in call.keywords:
            if keyword.arg == "out":
                self._writes.setdefault(_place_of(keyword.value)[0], []).append(call.lineno)
        for target in (*call.args[:1], getattr(call.func, "value", call.func)):
            name = _place_of(target)[0]
            if name in self._changed:
                self._writes.setdefault(name, []).append(call.lineno)

    def parts_of(self, name: str) -> list:
        """The buffers that are parts of a buffer."""
        return [part for part, place in self.parts.items() if place.whole == name]

    def holds(self, name: str, line: int) -> bool:
        """Whether a buffer holds its value before a line; of one that is changed later, the last.

        Args:
            name: A buffer or an input of the graph.
            line: Of the module.

        Returns:
            Whether it does.
        """
        if parts := self.parts_of(name):
            return all(self.holds(part, line) for part in parts)
        writes = self._writes.get(name, ())
        if name in self._changed:
            return bool(writes) and max(writes) < line
        return name not in self._empty or (bool(writes) and min(writes) < line)

    def used_after(self, name: str, line: int) -> bool:
        """Whether anything reads a buffer after a line.

        Args:
            name: A buffer.
            line: Of the module.

        Returns:
            Whether it does: a later line, or what is written into its memory.
        """
        heirs, todo = [], [name]
        while todo:
            heirs += todo
            todo = [new for new, old in self._in_place_of.items() if old in todo]
        return any(self._last.get(one, 0) > line and one == name or name in self._sources.get(one, ()) for one in heirs)

    def before(self, name: str, line: int) -> Optional[str]:
        """The buffer whose value is in the memory of a buffer before the line that writes it.

        Args:
            name: A buffer.
            line: Of the module.

        Returns:
            Its name; None where there is no value.
        """
        found = self._in_place_of.get(name)
        while found is not None and not self.holds(found, line):
            found = self._in_place_of.get(found)
        return found


def _place_of(node: ast.AST) -> tuple[str, int]:
    """The buffer of an argument, and where it begins, also of `reinterpret_tensor(buf0, size, stride, 4)`."""
    if isinstance(node, ast.Name):
        return node.id, 0
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reinterpret_tensor" and node.args:
        name, begin = _place_of(node.args[0])
        offset = node.args[3] if len(node.args) > 3 else ast.Constant(0)
        if isinstance(offset, ast.Constant) and isinstance(offset.value, int):
            return name, begin + offset.value
    return "", 0


def _kernel_of(call: ast.Call) -> str:
    if getattr(getattr(call.func, "value", None), "id", "") == "extern_kernels":
        return f"extern_kernels.{call.func.attr}"
    return getattr(call.func, "id", "")


def _arguments(tree: ast.AST) -> dict:
    """{kernel: (whether each argument is written, whether it is read before)} of those that Inductor wrote."""
    found = {}
    for node in ast.walk(tree):
        made = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
        if made is None or getattr(made.func, "attr", "") != "cpp_pybinding":
            continue
        types = ast.literal_eval(made.args[0])
        header = _PARAMETERS.search(made.args[1].value if len(made.args) > 1 else "")
        names = header.group(1).split(",") if header else []
        written = ["*" in kind and not kind.startswith("const ") for kind in types]
        found[node.targets[0].id] = written, ["in_out_ptr" in name for name in names] or [False] * len(types)
    return found


def _calls(tree: ast.AST) -> list[KernelCall]:
    arguments, found = _arguments(tree), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        kernel = _kernel_of(node)
        if kernel not in arguments and not kernel.startswith("extern_kernels."):
            continue
        places = [_place_of(value) for value in (*node.args, *(k.value for k in node.keywords))]
        names, offsets = tuple(name for name, _ in places), tuple(offset for _, offset in places)
        updated: tuple = ()
        if kernel in arguments:
            written, read = arguments[kernel]
            outputs = tuple(n for n, out in zip(names, written) if out and n)
            updated = tuple(n for n, both in zip(names, read) if both and n)
        else:
            outputs = tuple(_place_of(k.value)[0] for k in node.keywords if k.arg == "out")
        found.append(KernelCall(kernel, kernel in arguments, names, outputs, offsets, updated, node.lineno))
    return sorted(found, key=lambda call: call.line)

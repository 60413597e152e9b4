"""Derive the arguments of PyTorch's functions: their names by place (src/ops/argument_names.def), and what is taken for one that is
not given (src/ops/default_arguments.def).

    .venv/bin/python tools/default_arguments.py [--write]

Signatures are read from Python functions, and from the first lines of the docstrings of those that are written in C++. Of defaults
only numbers, truth values and texts count: None is the same as nothing.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

import torch

OPS = Path(__file__).parent.parent / "src" / "ops"
FILE, NAMES = OPS / "default_arguments.def", OPS / "argument_names.def"
HEAD = """// What functions of PyTorch take for an argument that is not given: MSP_DEFAULT_ARGUMENT(function, place, name, value), with place -1
// of what can be given by its name only. Derived from PyTorch itself by tools/default_arguments.py --write.
"""

NAMES_HEAD = """// The arguments of PyTorch's functions that can be given by their place: MSP_ARGUMENT_NAMES(function, names), from place 0 on;
// "-" has no name that tells anything. Derived from PyTorch itself by tools/default_arguments.py --write.
"""
NO_NAMES = ("self", "input", "other", "tensor", "tensor1", "tensor2", "tensors", "value")


def of_signature(function):
    """[(place, name, default)] of a Python function; None where it has no signature."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        (-1 if p.kind == keyword else i, p.name, p.default)
        for i, p in enumerate(parameters)
        if p.default is not p.empty
    ]


def parts_of_docstring(name, function):
    """The arguments as its signature in the docstring has them; () where there is none."""
    text = re.sub(r"\s+", " ", (function.__doc__ or "").strip())
    found = re.match(rf"{re.escape(name)}\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text)
    return [part.strip() for part in re.split(r",\s*(?![^()]*\))", found[1])] if found else ()


def of_docstring(name, function, method):
    """As of_signature(), of the signature in the docstring."""
    out, keyword, place = [], False, 1 if method else 0
    for part in parts_of_docstring(name, function):
        if part == "*":
            keyword = True
            continue
        key, equals, value = part.partition("=")
        key = key.split(":")[0].strip()
        if equals and key.isidentifier():
            try:
                out.append((-1 if keyword else place, key, ast.literal_eval(value.strip())))
            except (ValueError, SyntaxError):
                pass  # a name of PyTorch, such as torch.strided
        place += 1
    return out


def names_of(name, function, method):
    """Of what can be given by its place, in order; () where that is not known."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        out = [p.name for p in inspect.signature(function).parameters.values() if p.kind in positional]
    except (TypeError, ValueError):
        out = []
    if out:
        return out
    out = ["self"] if method else []
    for part in parts_of_docstring(name, function):
        if part.startswith("*"):
            break
        key = part.partition("=")[0].split(":")[0].strip()
        if not key.isidentifier():
            return ()
        out.append(key)
    return out


def functions():
    """(name, function, whether it is a method) of all that dumps may hold."""
    for space, method in ((torch.nn.functional, False), (torch, False), (torch.Tensor, True)):
        for name in dir(space):
            function = getattr(space, name, None)
            if not name.startswith("_") and callable(function) and not inspect.isclass(function):
                yield name, function, method


def names_table():
    """The text of the file of names; the functional form leads, then that of torch."""
    rows = {}
    for name, function, method in functions():
        shown_names = ["-" if n in NO_NAMES or n.startswith("_") else n for n in names_of(name, function, method)]
        if any(n != "-" for n in shown_names):
            rows.setdefault(name, " ".join(shown_names))
    return NAMES_HEAD + "".join(f'MSP_ARGUMENT_NAMES("{name}", "{row}")\n' for name, row in sorted(rows.items()))


def shown(value):
    """As dumps show it."""
    return repr(value) if not isinstance(value, str) else value


def rows():
    """Rows of the table; a function whose homes disagree about an argument has no row for it."""
    found = {}
    for name, function, method in functions():
        arguments = of_signature(function)
        if arguments is None or not arguments:
            arguments = of_docstring(name, function, method)
        for place, key, value in arguments:
            if isinstance(value, (bool, int, float, str)) and not key.startswith("_") and shown(value):
                found.setdefault((name, key), set()).add((place, shown(value)))
    return [(name, *next(iter(values)), key) for (name, key), values in sorted(found.items()) if len(values) == 1]


def table():
    """The text of the file."""
    lines = {}  # those of one function side by side
    for name, place, value, key in rows():
        lines.setdefault(name, []).append(f'MSP_DEFAULT_ARGUMENT("{name}", {place}, "{key}", "{value}")')
    return HEAD + "".join(" ".join(row) + "\n" for row in lines.values())


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        FILE.write_text(table())
        NAMES.write_text(names_table())
    else:
        for file, text in ((FILE, table()), (NAMES, names_table())):
            if not file.is_file() or file.read_text() != text:
                sys.exit(f"{file} is not what this PyTorch says: run tools/default_arguments.py --write")

"""Derive what functions of PyTorch take for an argument that is not given: src/ops/default_arguments.def.

    .venv/bin/python tools/default_arguments.py [--write]

Signatures are read from Python functions, and from the first lines of the docstrings of those that are written in C++. Only numbers,
truth values and texts count: None is the same as nothing.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

import torch

FILE = Path(__file__).parent.parent / "src" / "ops" / "default_arguments.def"
HEAD = """// What functions of PyTorch take for an argument that is not given: MSP_DEFAULT_ARGUMENT(function, place, name, value), with place -1
// of what can be given by its name only. Derived from PyTorch itself by tools/default_arguments.py --write.
"""


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


def of_docstring(name, function, method):
    """The same of the signature in the docstring; () where there is none, or several that differ."""
    text = re.sub(r"\s+", " ", (function.__doc__ or "").strip())
    found = re.match(rf"{re.escape(name)}\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text)
    if not found:
        return ()
    out, keyword, place = [], False, 1 if method else 0
    for part in re.split(r",\s*(?![^()]*\))", found[1]):
        part = part.strip()
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


def shown(value):
    """As dumps show it."""
    return repr(value) if not isinstance(value, str) else value


def rows():
    """Rows of the table; a function whose homes disagree about an argument has no row for it."""
    found = {}
    for space, method in ((torch.nn.functional, False), (torch, False), (torch.Tensor, True)):
        for name in dir(space):
            function = getattr(space, name, None)
            if name.startswith("_") or not callable(function) or inspect.isclass(function):
                continue
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
    elif FILE.read_text() != table():
        sys.exit(f"{FILE} is not what this PyTorch says: run tools/default_arguments.py --write")

#!/usr/bin/env python3
"""Each function of ours that a framework calls back is behind the one guard (python/msprobe/_capture/guard.py).

What is given to register_hook() and the like, to add_done_callback() and to atexit has to be a call of one of GUARDS, a name that is
bound to one, or a function that is decorated with one. HookSet (pytorch/hook_points.py) puts it around what it is given.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUARDS = {"shielded", "callback", "_as_callback"}
REGISTERS = re.compile(r"register\w*hook|add_done_callback|register_(start|end)_callback|register_at_fork")
# Programs of their own, in which no training runs.
PROGRAMS = {"_recorded.py", "_replay.py"}


def _called(node):
    """The last part of the name of what a call calls."""
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", ""))


def _guarded_names(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            _called(one) in GUARDS for one in node.decorator_list
        ):
            names.add(node.name)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) in GUARDS:
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def _registers(node):
    name = _called(node)
    owner = getattr(getattr(node.func, "value", None), "id", "")
    return bool(REGISTERS.fullmatch(name)) or (name == "register" and owner == "atexit")


def _is_guarded(value, names):
    if isinstance(value, ast.Call):
        return _called(value) in GUARDS
    return isinstance(value, ast.Name) and value.id in names


def faults(path, source):
    """Lines of a file that say which callback is not guarded.

    Args:
        path: For the lines.
        source: Its text.

    Returns:
        The lines.
    """
    tree = ast.parse(source)
    names, found = _guarded_names(tree), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _registers(node):
            continue
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("hook", "fn", "func", "after_in_child"))]
        if given and not _is_guarded(given[0], names):
            found.append(f"{path}:{node.lineno}: {_called(node)}() is given a function that is not behind the guard")
    return found


def main():
    found, files = [], 0
    for path in sorted((ROOT / "python" / "msprobe").rglob("*.py")):
        if path.name not in PROGRAMS:
            files += 1
            found += faults(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    print("\n".join(found) if found else f"callbacks: {files} files, each callback is behind the guard")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

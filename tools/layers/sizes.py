"""How large a folder, a file and a function may become."""

import ast
import collections

from layers import cpp_types, sources

MOST_FILES = 40  # production files of a folder
MOST_LINES = 500  # of a file
MOST_FUNCTION_LINES = 80


def check_folders(root):
    counts = collections.Counter(
        path.parent for path in sources.production(root, sources.CPP + sources.PYTHON + sources.TYPESCRIPT)
    )
    for folder, count in sorted(counts.items()):
        if count > MOST_FILES:
            yield f"{folder.relative_to(root)}: {count} production files, at most {MOST_FILES}: make rooms of it"


def check_files(root):
    for path in sources.production(root, sources.CPP + sources.PYTHON + sources.TYPESCRIPT):
        lines = path.read_text().count("\n")
        if lines > MOST_LINES:
            yield f"{path.relative_to(root)}: {lines} lines, at most {MOST_LINES}"


def python_functions(text):
    """(name, first line, lines) of every function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def check_functions(root):
    for kinds, functions in ((sources.CPP, cpp_types.functions_of), (sources.PYTHON, python_functions)):
        for path in sources.production(root, kinds):
            for name, line, lines in functions(path.read_text()):
                if lines > MOST_FUNCTION_LINES:
                    where = f"{path.relative_to(root)}:{line}"
                    yield f"{where}: {name} has {lines} lines, at most {MOST_FUNCTION_LINES}"


def check(root):
    yield from check_folders(root)
    yield from check_files(root)
    yield from check_functions(root)

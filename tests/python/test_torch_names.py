"""No name of PyTorch is used that the lowest supported release lacks, but in _compat.py.

`python tests/python/test_torch_names.py`, run by an interpreter with that release, writes torch_names.txt anew: what the sources
use and the release has. A name that is not in it is either new (run the script), or belongs into _compat.py.
"""

import ast
import importlib
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python" / "msprobe"
KNOWN = HERE / "torch_names.txt"

# Asked for only where the line before has found them, or in a module that is not loaded without them.
GUARDED = {
    "torch._C._cuda_getCurrentRawStream": "pytorch/monitor/device_rows.py",  # of builds for CUDA
    "torch.distributed.tensor._utils": "_attach/parity/places.py",  # of a DTensor
    "torch._foreach_max": "pytorch/many.py",
    "torch.amp.GradScaler": "_attach/states.py",
    "torch.npu": "pytorch/",
}


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) and node.id == "torch" else None


def names_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield dotted(node)
        elif (
            isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch" and not node.level
        ):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "torch")


def used():
    """{name: files}: of the product, without what only _compat.py asks for."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "_compat.py":
            continue
        for name in filter(None, names_of(ast.parse(path.read_text(encoding="utf-8")))):
            found.setdefault(name, set()).add(str(path.relative_to(PACKAGE)))
    return found


def has(name):
    first, *parts = name.split(".")
    value = importlib.import_module(first)
    for i, part in enumerate(parts, 1):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:  # a module that its package does not show
            value = importlib.import_module(".".join([first, *parts[:i]]))
        except ImportError:
            return False
    return True


def is_guarded(name, files):
    return any(
        (name == guarded or name.startswith(guarded + ".")) and all(file.startswith(place) for file in files)
        for guarded, place in GUARDED.items()
    )


def test_the_lowest_release_has_each_name():
    known = set(KNOWN.read_text(encoding="utf-8").split())
    found = used()
    assert len(found) > 150
    unknown = {
        name: sorted(files) for name, files in found.items() if name not in known and not is_guarded(name, files)
    }
    assert not unknown, f"not in {KNOWN.name}: see the head of {Path(__file__).name}"


def test_the_newest_release_has_each_name():
    missing = [name for name, files in used().items() if not is_guarded(name, files) and not has(name)]
    assert not missing


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    there = sorted(name for name in used() if has(name))
    KNOWN.write_text("\n".join(there) + "\n", encoding="utf-8")
    lacking = sorted(set(used()) - set(there))
    print(f"{len(there)} names; it lacks {', '.join(lacking) or 'none'}")
    sys.exit(any(not is_guarded(name, used()[name]) for name in lacking))

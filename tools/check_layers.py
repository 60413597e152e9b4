#!/usr/bin/env python3
"""Holds every import to the allow-list of rooms: C++ includes, Python imports, TypeScript imports.

A room may use itself, the rooms named here, and nothing else of ours. The C++ list is the one of CMakeLists.txt.
No two C++ files may define a type of one name, wherever they stand.
"""

import pathlib
import re
import sys

import cpp_types

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Python: module of ours -> modules of ours it may import. "_core" is the compiled recorder.
PYTHON = {
    "msprobe": {"msprobe._core"},
    "msprobe.pytorch": {"msprobe", "msprobe._core", "msprobe._compare"},
    "msprobe.mindspore": {"msprobe._compare"},
    "msprobe.tensorboard": {"msprobe._environment", "msprobe._page"},
    "msprobe._attach": {"msprobe", "msprobe._core", "msprobe.pytorch"},
    "msprobe._attach.site": {"msprobe._attach"},  # by the interpreters of others, with the standard library only
    "msprobe.core": {"msprobe.core.single_save.single_comparator", "msprobe.core.single_save.single_saver"},
    "msprobe.core.single_save": {"msprobe.pytorch.single_compare", "msprobe.pytorch.single_save"},
}
# TypeScript: folder of web/src -> folders it may import ("" is web/src itself).
TYPESCRIPT = {
    "i18n": set(),
    "theme": set(),
    "api": set(),
    "model": {"api"},
    "layout": {"model", "api"},
    "render": {"layout", "model", "theme", "api", "i18n"},
    "panels": {"model", "api", "i18n", "theme", "layout", "render"},
}
TYPESCRIPT_ROOT_MAY_USE_ALL = True


def cpp_rooms():
    """room -> rooms it may include, with what those rooms may include."""
    text = (ROOT / "CMakeLists.txt").read_text()
    direct = {}
    for name, rest in re.findall(r"msprobe_room\((\w+)([^)]*)\)", text):
        deps = re.search(r"DEPS ([\w ]+?)(?: LIBS|$)", rest.strip())
        direct[name] = set(deps.group(1).split()) if deps else set()
    closed = {}
    for name in direct:
        seen, todo = set(), [name]
        while todo:
            for dep in direct[todo.pop()]:
                if dep not in seen:
                    seen.add(dep)
                    todo.append(dep)
        closed[name] = seen
    return closed


def check_cpp():
    rooms = cpp_rooms()
    everything = set(rooms)
    rooms["bindings"] = everything - {"cli", "serve", "view"}
    rooms["bindings/page"] = everything - {"cli"}  # an extension of its own, not loaded by training scripts
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        folder = path.relative_to(ROOT / "src").parent.as_posix()
        room = folder if folder in rooms else folder.split("/")[0]
        if room not in rooms:
            yield f"{path.relative_to(ROOT)}: room '{room}' is not in CMakeLists.txt"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#include "([\w]+)/', line)
            if match and match.group(1) != room and match.group(1) not in rooms[room]:
                yield f"{path.relative_to(ROOT)}:{number}: {room} may not include {match.group(1)}"
            if re.match(r"\s*#include <(Python\.h|nanobind/)", line) and not room.startswith("bindings"):
                yield f"{path.relative_to(ROOT)}:{number}: only src/bindings may include {line.strip()}"


def check_type_names():
    """Two types of one name with different members: the linker keeps the functions of one of them, for both."""
    paths = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".h", ".cc"})
    for name, places in cpp_types.shared_names({str(p.relative_to(ROOT)): p.read_text() for p in paths}):
        yield f"{places[0]}: {name} is also defined at {', '.join(places[1:])}; rename one or use an unnamed namespace"


def check_python():
    base = ROOT / "python"
    for path in sorted((base / "msprobe").rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        package = ".".join(parts[:-1])
        allowed = PYTHON.get(package)
        if allowed is None:
            yield f"{path.relative_to(ROOT)}: package '{package}' is not in the allow-list of tools/check_layers.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"\s*(?:from|import) (msprobe[\w.]*)", line)
            if not match:
                continue
            target = match.group(1)
            if target == package or target.startswith(package + ".") and package != "msprobe" or target in allowed:
                continue
            yield f"{path.relative_to(ROOT)}:{number}: {package} may not import {target}"


def check_report_page():
    """The page of the HTML report shares the colours of the other page and nothing else."""
    base = ROOT / "web" / "report" / "src"
    for path in sorted([*base.rglob("*.ts"), *base.rglob("*.tsx")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.search(r"""from ["'](\.[^"']*)["']""", line)
            target = (path.parent / match.group(1)).resolve() if match else base
            if not target.is_relative_to(base) and not target.is_relative_to(ROOT / "web" / "src" / "theme"):
                yield f"{path.relative_to(ROOT)}:{number}: web/report may only import web/src/theme"


def check_typescript():
    base = ROOT / "web" / "src"
    for path in sorted([*base.rglob("*.ts"), *base.rglob("*.tsx")]):
        parts = path.relative_to(base).parts
        folder = parts[0] if len(parts) > 1 else ""
        if folder == "":
            continue  # the page's entry ties the folders together
        if folder not in TYPESCRIPT:
            yield f"{path.relative_to(ROOT)}: folder '{folder}' is not in the allow-list of tools/check_layers.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.search(r"""from ["'](\.[^"']*)["']""", line)
            if not match:
                continue
            target = (path.parent / match.group(1)).resolve()
            if not target.is_relative_to(base):
                continue
            inside = target.relative_to(base).parts
            other = inside[0] if len(inside) > 1 or (base / inside[0]).is_dir() else ""
            if other != folder and other not in TYPESCRIPT[folder]:
                yield f"{path.relative_to(ROOT)}:{number}: web/src/{folder} may not import web/src/{other}"


def main():
    faults = [*check_cpp(), *check_type_names(), *check_python(), *check_typescript(), *check_report_page()]
    for fault in faults:
        print(fault)
    print(f"layers: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

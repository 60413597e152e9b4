#!/usr/bin/env python3
"""Holds the tree to its own rules: which room may use which (C++ includes, Python imports, TypeScript imports), no circles
of units, one type for one name, and bounds for the sizes of folders, files and functions (tools/layers).

A room may use itself, the rooms named here, and nothing else of ours. The C++ list is the one of CMakeLists.txt.
"""

import pathlib
import re
import sys

from layers import circles, cpp_types, sizes
from layers.sources import is_test

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Python: module of ours -> modules of ours it may import. "_core" is the compiled recorder.
PYTHON = {
    "msprobe": {"msprobe._core"},
    "msprobe.pytorch": {"msprobe", "msprobe._core", "msprobe._compare_result", "msprobe._environment"},
    "msprobe.pytorch.compare": {"msprobe._compare"},
    "msprobe._config": {"msprobe._environment"},
    "msprobe._capture": {"msprobe._core", "msprobe._environment"},
    "msprobe._capture.config": {"msprobe._capture.errors"},
    "msprobe._capture.free_benchmark": {"msprobe._capture"},
    "msprobe.mindspore": {"msprobe._compare_result"},
    "msprobe.mindspore.compare": {"msprobe._compare"},
    "msprobe.tensorboard": {"msprobe._environment", "msprobe._page"},
    "msprobe._attach": {
        "msprobe",
        "msprobe._core",
        "msprobe._capture",
        "msprobe._attach.parity",
        "msprobe.pytorch",
        "msprobe.mindspore",
    },
    "msprobe._attach.parity": {"msprobe", "msprobe._attach", "msprobe._capture", "msprobe._core"},
    "msprobe._attach.site": {"msprobe._attach"},  # by the interpreters of others, with the standard library only
    "msprobe.core": {"msprobe.core.single_save.single_comparator", "msprobe.core.single_save.single_saver"},
    "msprobe.core.config_check": {"msprobe._config.checker"},
    "msprobe._monitor": {"msprobe._core", "msprobe._capture"},
    "msprobe.pytorch.monitor": {"msprobe._monitor"},
    "msprobe.pytorch.monitor.laws": {"msprobe._core", "msprobe._monitor", "msprobe.pytorch.monitor"},
    "msprobe.mindspore.monitor": {"msprobe._monitor", "msprobe._capture", "msprobe.mindspore"},
    "msprobe.response_anomaly": {"msprobe._core"},
    "msprobe.scripts.atb": set(),
    "msprobe.pytorch.online_check": {"msprobe._capture"},
    "msprobe.pytorch.free_benchmark": {"msprobe._capture", "msprobe.pytorch.apis"},
    "msprobe.mindspore.free_benchmark": {"msprobe._capture", "msprobe._core", "msprobe.mindspore"},
    "msprobe.pytorch.online_dispatch": {
        "msprobe._core",
        "msprobe._capture",
        "msprobe.pytorch.device_stats",
        "msprobe.pytorch.free_benchmark",
        "msprobe.pytorch.npy",
    },
    "msprobe.pytorch.compile_accuracy_checker": {"msprobe._capture", "msprobe._channel"},
    "msprobe.core.monitor": {"msprobe._monitor"},
    "msprobe.core.grad_probe": {"msprobe._capture"},
    "msprobe.core.monitor_v2": {"msprobe._monitor", "msprobe.pytorch.monitor"},
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
# Faults that are still there: where they begin, and what is left to do.
LEFT = {}
TESTS = {}  # C++ room -> rooms that only its tests may use; read from CMakeLists.txt


def cpp_rooms():
    """room -> rooms it may include, with what those rooms may include."""
    text = (ROOT / "CMakeLists.txt").read_text()
    direct = {}
    for name, rest in re.findall(r"msprobe_room\(([\w/]+)([^)]*)\)", text):
        deps = re.search(r"DEPS ([\w/ ]+?)(?: LIBS| TESTS|$)", rest.strip())
        direct[name] = set(deps.group(1).split()) if deps else set()
    for name, rest in re.findall(r"msprobe_room\(([\w/]+)([^)]*)\)", text):
        extra = re.search(r"TESTS ([\w/ ]+)", rest.split("LIBS")[0])
        TESTS[name] = set(extra.group(1).split()) if extra else set()
    closed = {}
    for name in direct:
        seen, todo = set(), [name]
        while todo:
            for dep in direct[todo.pop()]:
                if dep not in seen:
                    seen.add(dep)
                    todo.append(dep)
        closed[name] = seen
    for name, extra in TESTS.items():
        TESTS[name] = extra.union(*(closed[room] for room in extra))
    return closed


def check_cpp():
    rooms = cpp_rooms()
    everything = set(rooms)
    training = {room for room in everything if room.split("/")[0] not in {"cli", "serve", "view"}}
    rooms["bindings"] = training | {
        "bindings/python",
        "bindings/backward",
        "bindings/device",
        "bindings/torch",
        "bindings/mindspore",
        "bindings/monitor",
        "bindings/monitor/torch",
    }
    rooms["bindings/python"] = training  # what every framework shares: it knows none
    rooms["bindings/backward"] = training | {"bindings/python"}  # graphs of nodes, alike in both frameworks
    rooms["bindings/device"] = training | {"bindings/python"}
    rooms["bindings/mindspore"] = training | {"bindings/python", "bindings/backward"}
    rooms["bindings/torch"] = rooms["bindings/mindspore"] | {"bindings/device"}
    rooms["bindings/monitor"] = training | {"bindings/python"}
    rooms["bindings/monitor/torch"] = rooms["bindings/torch"] | {"bindings/torch", "bindings/monitor"}
    rooms["bindings/page"] = everything - {"cli"}  # an extension of its own, not loaded by training scripts
    tops = {room.split("/")[0] for room in rooms}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        room = path.relative_to(ROOT / "src").parent.as_posix()
        if room not in rooms and not (room in tops and is_test(path)):
            yield f"{path.relative_to(ROOT)}: room '{room}' is not in CMakeLists.txt"
            continue
        inside = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            inside = inside or line.startswith("namespace ")
            if inside and re.match(r'#include ".*(?<!-inl)\.h"', line):
                yield f"{path.relative_to(ROOT)}:{number}: a header is included inside of a namespace"
            match = re.match(r'\s*#include "([\w/]+)/[^"/]+"', line)
            if match and not may_include(path, room, match.group(1), rooms):
                yield f"{path.relative_to(ROOT)}:{number}: {room} may not include {match.group(1)}"
            if re.match(r"\s*#include <(Python\.h|nanobind/)", line) and not room.startswith("bindings"):
                yield f"{path.relative_to(ROOT)}:{number}: only src/bindings may include {line.strip()}"


def may_include(path, room, other, rooms):
    """Rooms of one folder share a program of tests, so a test may include all of them."""
    if other == room or other in rooms.get(room, ()):
        return True
    if not is_test(path):
        return False
    parts = [r for r in rooms if r == room or room not in rooms and r.startswith(room + "/")]
    usable = {room}.union(parts, *(rooms[r] | TESTS.get(r, set()) for r in parts))
    return other in usable or other.split("/")[0] in {r.split("/")[0] for r in usable}


def check_type_names():
    """Of two types with one name and different members the linker keeps the functions of one, for both; in two
    namespaces they are legal, but a reader takes one for the other."""
    paths = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".h", ".cc"})
    files = {str(p.relative_to(ROOT)): p.read_text() for p in paths}
    for name, places in cpp_types.shared_names(files):
        yield f"{places[0]}: {name} is also defined at {', '.join(places[1:])}; rename one or use an unnamed namespace"
    production = {name: text for name, text in files.items() if not is_test(pathlib.Path(name))}
    for word, places in cpp_types.shared_words(production):
        yield f"{places[0]}: {word} is also defined at {', '.join(places[1:])}; rename one by what it means"


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
    faults += [*circles.check(ROOT), *sizes.check(ROOT)]
    left = [fault for fault in faults if fault.startswith(tuple(LEFT))]
    for place in LEFT:
        if not any(fault.startswith(place) for fault in left):
            print(f"tools/check_layers.py: nothing is left of {place}: remove it from LEFT")
    faults = [fault for fault in faults if fault not in left]
    for fault in faults:
        print(fault)
    print(f"layers: {len(faults)} faults" + (f", {len(left)} left" if left else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Circles of units: a unit is a header with its source (x.h, x-inl.h, x.cc), or a module of the page."""

import collections
import re

from layers import sources


def circles(graph):
    """Sets of nodes that reach each other, in order, each sorted."""
    reached = {}
    for start in graph:
        seen, todo = set(), [start]
        while todo:
            for other in graph.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        reached[start] = seen
    found = {tuple(sorted({a} | {b for b in reached[a] if a in reached.get(b, ())})) for a in graph if a in reached[a]}
    return sorted(found)


def cpp_unit(name):
    return re.sub(r"(-inl)?\.(h|cc|inc|def)$", "", name)


def cpp_graph(root):
    graph, places = collections.defaultdict(set), {}
    base = root / "src"
    paths = [p for p in sources.production(root, sources.CPP) if p.is_relative_to(base)]
    names = {p.relative_to(base).as_posix() for p in paths}
    for path in paths:
        name = path.relative_to(base).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#include "([^"]+)"', line)
            if match and match.group(1) in names and cpp_unit(match.group(1)) != cpp_unit(name):
                edge = cpp_unit(name), cpp_unit(match.group(1))
                graph[edge[0]].add(edge[1])
                places.setdefault(edge, f"src/{name}:{number}")
    return graph, places


def typescript_graph(root):
    graph, places = collections.defaultdict(set), {}
    for path in sources.production(root, sources.TYPESCRIPT):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        for match in re.finditer(r"""(?:from|import)\s*\(?["'](\.[^"']*)["']""", text):
            stem = (path.parent / match.group(1)).resolve()
            tried = [stem.with_name(stem.name + end) for end in (".ts", ".tsx")] + [stem / "index.ts", stem]
            target = next((t for t in tried if t.is_file()), None)
            if target is None or target == path:
                continue
            edge = name, target.relative_to(root).as_posix()
            graph[name].add(edge[1])
            places.setdefault(edge, f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
    return graph, places


def check(root):
    for graph, places in (cpp_graph(root), typescript_graph(root)):
        for units in circles(graph):
            edges = sorted(where for (a, b), where in places.items() if a in units and b in units)
            yield f"{edges[0]}: {', '.join(units)} include each other ({', '.join(edges)}): move what both need down"

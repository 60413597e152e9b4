"""Which side of a redistribution TensorDump shows in graph mode: what MindFormers' layer_mapping.yaml says of its Cells.

Where a parallel strategy puts operators between two Cells, what the first gives and what the second is given differ.
`configuration/layer_mapping.yaml` of MindFormers has `(INPUTS,OUTPUTS)` for Cells: `in` or `out`, or a list of them in order,
as `(in,[out,in])`; `in` is what the user of a value is given.

    ParallelTransformerLayer:        # a class; below it paths of Cells inside
      attention.wq: (in,out)
    TopLayer:                        # paths in the whole network
      lm_head: (in,[out,in])
"""

import importlib.util
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .._capture.log import logger

_TOP = "TopLayer"
_LINE = re.compile(r"(?P<indent> *)(?P<quote>['\"]?)(?P<key>[\w.]+)(?P=quote)\s*:\s*(?P<value>.*?)\s*")
_MODE = r"in|out"
_SIDE = rf"(?:{_MODE})|\[\s*(?:(?:{_MODE})\s*(?:,\s*(?:{_MODE})\s*)*)?\]"
_MODES = re.compile(rf"\(\s*(?P<inputs>{_SIDE})\s*,\s*(?P<outputs>{_SIDE})\s*\)")


class Modes(NamedTuple):
    """Of a Cell's arguments and results in order: True where TensorDump takes mode `in`; False, too, behind the end."""

    inputs: tuple = ()
    outputs: tuple = ()


def parse(text: str, path: str) -> dict[str, dict[str, Modes]]:
    """Reads the file: class, path below it, modes. What is not understood is warned of and left out."""
    found: dict[str, dict[str, Modes]] = {}
    section: dict[str, Modes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split(" #")[0].rstrip() if not line.lstrip().startswith("#") else ""
        if not content:
            continue
        match = _LINE.fullmatch(content)
        value = match["value"].strip("'\"") if match else ""
        modes = _MODES.fullmatch(value)
        if match and not match["indent"] and not value:
            section = found.setdefault(match["key"], {})
        elif match and match["indent"] and modes:
            section[match["key"]] = Modes(*(_side(modes[side]) for side in ("inputs", "outputs")))
        elif match is None or match["indent"]:
            logger.warning("%s, line %d is not understood and left out: %s", path, number, content.strip())
    return found


def _side(text: str) -> tuple:
    return tuple(mode == "in" for mode in re.findall(_MODE, text))


def of_mindformers() -> dict[str, dict[str, Modes]]:
    """Returns what the installed MindFormers says; nothing where there is none. Imports it not."""
    spec = importlib.util.find_spec("mindformers")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = os.path.join(folder, "configuration", "layer_mapping.yaml")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                return parse(file.read(), path)
    return {}


def of_cells(cells: Iterable[tuple[str, Any]], table: dict[str, dict[str, Modes]]) -> dict[int, Modes]:
    """Returns the modes of those Cells that have some, by id. `cells`: the prefix of their entries, and the Cell."""
    found: dict[int, Modes] = {}
    for base, cell in cells:
        inside = table.get(type(cell).__name__)
        if inside:
            children = {path: child for path, child in cell.cells_and_names() if path}
            found.update({id(children[path]): modes for path, modes in inside.items() if path in children})
        path = base.removeprefix("Cell.").removesuffix(f".{type(cell).__name__}")
        if path in table.get(_TOP, {}):
            found[id(cell)] = table[_TOP][path]
    return found

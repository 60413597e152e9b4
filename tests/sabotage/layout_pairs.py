"""The same run twice on every layout: no answer may say that they differ, in whatever is recorded."""

from clean import Clean
from layouts import MAKERS, WORLD

WAYS = {
    "mix": {},
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "md5": {"summary": "md5"},
    "tensor": {"task": "tensor"},
    "L1_tensor": {"level": "L1", "task": "tensor"},
}


def pair(layout, way):
    make = MAKERS[layout]
    return Clean(f"same_{layout}_{way}", make, make, f"the same run, {layout}", world=WORLD, **WAYS[way])


LAYOUTS = [pair(layout, way) for layout in MAKERS for way in WAYS]

"""The same run twice on every layout: no answer may say that they differ, in whatever is recorded.

UNCAPTURED: the same once more, without capture, to hold the bits of its training against those of the others.
"""

from clean import Clean
from layouts import MAKERS, WORLD
from unwritten_memory import filled_with_large, filled_with_nan

WAYS = {
    "mix": {},
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "md5": {"summary": "md5"},
    "tensor": {"task": "tensor"},
    "L1_tensor": {"level": "L1", "task": "tensor"},
}
TARGETS = {name: filled_with_large(make) for name, make in MAKERS.items()}
GOLDENS = {name: filled_with_nan(make) for name, make in MAKERS.items()}


def pair(layout, way):
    about = f"the same run, {layout}"
    return Clean(f"same_{layout}_{way}", TARGETS[layout], GOLDENS[layout], about, world=WORLD, **WAYS[way])


LAYOUTS = [pair(layout, way) for layout in MAKERS for way in WAYS]
UNCAPTURED = [
    Clean(f"bits_{name}", make, GOLDENS[name], "no capture", world=WORLD, level="none") for name, make in MAKERS.items()
]

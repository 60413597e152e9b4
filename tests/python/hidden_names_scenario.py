"""Trains as tests/versions/training.py does, while modules of PyTorch are hidden from msprobe and from nobody else.

usage: hidden_names_scenario.py HIDDEN run|monitor|bare DIRECTORY
HIDDEN: such as torch.distributed, or - for none. run: as below `msprobe run`; monitor: with TrainerMon.
"""

import builtins
import importlib
import json
import os
import sys
import types
from pathlib import Path

import torch
import torch._dynamo  # noqa: F401 - some of it is asked for by the first step of an optimizer

sys.path.append(str(Path(__file__).resolve().parents[1] / "versions"))
import training


def asks_from_msprobe(frame):
    """Whether the caller is msprobe, be it through the machinery of imports."""
    while frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").partition(".")[0] == "msprobe"


def hide(hidden):
    def is_hidden(name):
        return name == hidden or name.startswith(hidden + ".")

    imports, import_module = builtins.__import__, importlib.import_module

    def importing(name, globals=None, locals=None, fromlist=(), level=0):
        names = [name, *(f"{name}.{part}" for part in fromlist or ())] if level == 0 else []
        if any(map(is_hidden, names)) and asks_from_msprobe(sys._getframe(1)):
            raise ModuleNotFoundError(f"No module named {hidden!r}", name=hidden)
        return imports(name, globals, locals, fromlist, level)

    def import_by_name(name, package=None):
        if is_hidden(name) and asks_from_msprobe(sys._getframe(1)):
            raise ModuleNotFoundError(f"No module named {hidden!r}", name=hidden)
        return import_module(name, package)

    parent, _, attribute = hidden.rpartition(".")

    class Hiding(types.ModuleType):
        def __getattribute__(self, name):
            if name == attribute and asks_from_msprobe(sys._getframe(1)):
                raise AttributeError(f"module {parent!r} has no attribute {attribute!r}")
            return super().__getattribute__(name)

    import_module(parent).__class__ = Hiding
    builtins.__import__, importlib.import_module = importing, import_by_name


def main(hidden, mode, directory):
    if hidden != "-":
        hide(hidden)
    steps = ["--steps", "2"]
    if mode == "run":
        asked = {"mode": "run", "dump_path": directory, "level": "mix"}
        os.environ["MSPROBE_ATTACH"] = json.dumps(asked)
        from msprobe._attach import session

        session.attach("torch")
    if mode == "monitor":
        path = Path(directory) / "monitor.json"
        path.write_text(json.dumps({"targets": {}, "xy_distribution": True, "wg_distribution": True, "ops": ["norm"]}))
        steps += ["--monitor", str(path)]
    training.main(steps)


main(*sys.argv[1:])

"""Runs small scripts under the tool and reads what they dumped."""

import json
from pathlib import Path
from typing import NamedTuple

from conftest import Script, run_python

PRELUDE = """
import json, sys
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.set_num_threads(1)
"""

CONSTRUCT = """
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path="config.json")
torch.manual_seed(0)
"""


class Dump(NamedTuple):
    script: Script
    root: Path  # the dump_path

    def directory(self, step=0, rank="rank") -> Path:
        return self.root / f"step{step}" / rank

    def json(self, name, step=0, rank="rank"):
        return json.loads((self.directory(step, rank) / name).read_text(encoding="utf-8"))

    def data(self, step=0, rank="rank"):
        return self.json("dump.json", step, rank)["data"]

    def construct(self, step=0, rank="rank"):
        return self.json("construct.json", step, rank)

    def names(self, step=0, rank="rank"):
        return list(self.data(step, rank))


def write_config(directory: Path, *, task="statistics", level="L1", section=None, **keys) -> Path:
    config = {"task": task, "level": level, "dump_path": str(directory / "dump"), **keys}
    config[task] = {"scope": [], "list": [], "data_mode": ["all"], **(section or {})}
    path = directory / "config.json"
    path.write_text(json.dumps(config))
    return path


def capture(directory: Path, body: str, *, early="", check=True, python=None, timeout=300, **config) -> Dump:
    """Runs PRELUDE, `early`, the construction of `debugger`, and `body` in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    write_config(directory, **config)
    script = directory / "script.py"
    script.write_text(PRELUDE + early + CONSTRUCT + body, encoding="utf-8")
    options = {"python": python, "ours": False} if python else {}
    done = run_python([script], cwd=directory, check=check, timeout=timeout, **options)
    return Dump(done, directory / "dump")


EACH = """
import os, traceback
from msprobe.pytorch import PrecisionDebugger

def run(directory):
    os.chdir(directory)
    debugger = PrecisionDebugger(config_path="config.json")
    torch.manual_seed(0)
    exec(compile(BODY, "body", "exec"), {**globals(), "debugger": debugger})

for directory in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            run(directory)
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{directory} failed")
"""


def capture_each(directory: Path, body: str, configs: list, *, early="", python=None) -> list:
    """Like capture(), for several configurations; the body ends its steps itself. One interpreter loads PyTorch, and a child
    of it runs each configuration."""
    dumps = []
    for number, config in enumerate(configs):
        place = directory / str(number)
        place.mkdir(parents=True)
        write_config(place, **config)
        dumps.append(place)
    script = directory / "script.py"
    script.write_text(PRELUDE + early + f"BODY = {body!r}\n" + EACH, encoding="utf-8")
    options = {"python": python, "ours": False} if python else {}
    done = run_python([script, *dumps], cwd=directory, **options)
    return [Dump(done, place / "dump") for place in dumps]

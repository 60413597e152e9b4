"""Runs small scripts under the tool and reads what they dumped."""

import json
from pathlib import Path
from typing import NamedTuple

from launch import Script, run_python

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


def capture(
    directory: Path, body: str, *, early="", check=True, python=None, timeout=300, fresh=False, **config
) -> Dump:
    """Runs PRELUDE, `early`, the construction of `debugger`, and `body` in `directory`; see run_python() for `fresh`."""
    directory.mkdir(parents=True, exist_ok=True)
    write_config(directory, **config)
    script = directory / "script.py"
    script.write_text(PRELUDE + early + CONSTRUCT + body, encoding="utf-8")
    options = {"python": python, "ours": False} if python else {}
    done = run_python([script], cwd=directory, check=check, timeout=timeout, fresh=fresh, **options)
    return Dump(done, directory / "dump")


def capture_each(directory: Path, body: str, configs: list, **options) -> list:
    """Like capture(), for several configurations."""
    return [capture(directory / str(number), body, **options, **config) for number, config in enumerate(configs)]

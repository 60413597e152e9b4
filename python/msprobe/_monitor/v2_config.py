"""The configuration of TrainerMonitorV2."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

from .._capture.log import logger
from .config import ENDLESS, whole_number

OPS = ("min", "max", "mean", "norm", "nans")
KINDS = ("module", "weight_grad", "optimizer", "param", "cc")
# A key by which a monitor can be switched off beside "enabled".
_SWITCHES = {"optimizer": "mv_distribution", "param": "param_distribution"}
_MOST_BYTES = 16 << 20


@dataclass
class KindConfig:
    """What one monitor is to do."""

    ops: list = field(default_factory=lambda: list(OPS))
    targets: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    module_ranks: set = field(default_factory=set)  # of cc; empty: all


@dataclass
class V2Config:
    """One member for each key."""

    framework: str = "pytorch"
    output_dir: str = "./"
    ranks: set = field(default_factory=set)
    start_step: int = 0
    stop_step: int = 0
    step_interval: int = 1
    step_count_per_record: int = 1
    collect_times: int = ENDLESS
    patch_optimizer_step: Any = None  # None: if an optimizer is given
    monitors: dict = field(default_factory=dict)

    def is_monitored(self, step: int) -> bool:
        """Tells whether values of this step are written."""
        inside = self.start_step <= step < self.stop_step
        return inside and (step - self.start_step) % self.step_interval == 0


def load_v2_config(path: str) -> V2Config:
    """Reads and checks a configuration.

    Args:
        path: A JSON file.

    Returns:
        The configuration.

    Raises:
        ValueError: It cannot be read, or a value is out of range.
        TypeError: It is no JSON object.
    """
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise ValueError(f"{path} is larger than {_MOST_BYTES >> 20} MB: give the configuration of a monitor")
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
    except OSError as error:
        raise ValueError(f"the configuration of the monitor cannot be read: {error}") from None
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise TypeError(f"{path} holds no JSON object: it begins with {{ and ends with }}")
    config = V2Config(framework=str(given.get("framework", "pytorch")), output_dir=str(given.get("output_dir", "./")))
    form = str(given.get("format", "csv")).strip().lower()
    if form != "csv":
        raise ValueError(f"format is {form!r}; allowed: csv ({path})")
    config.ranks = _ranks(given.get("rank", []))
    config.start_step = whole_number(given.get("start_step"), "start_step", 0, 0)
    config.step_interval = whole_number(given.get("step_interval"), "step_interval", 1, 1)
    config.step_count_per_record = whole_number(given.get("step_count_per_record"), "step_count_per_record", 1, 1)
    config.collect_times = whole_number(given.get("collect_times"), "collect_times", 1, ENDLESS)
    last = config.start_step + config.collect_times * config.step_interval
    config.stop_step = whole_number(given.get("stop_step"), "stop_step", config.start_step, last)
    if "patch_optimizer_step" in given:
        config.patch_optimizer_step = bool(given["patch_optimizer_step"])
    monitors = given.get("monitors", {})
    if not isinstance(monitors, dict):
        logger.warning("%s: monitors is no object: nothing is monitored", path)
        monitors = {}
    for name, one in monitors.items():
        if name not in KINDS:
            logger.warning("%s: monitors has %s; allowed: %s", path, name, ", ".join(KINDS))
        elif isinstance(one, dict) and _is_on(name, one):
            config.monitors[name] = _kind(name, one, path)
    if given.get("async_write"):
        logger.warning("%s: async_write is left out: rows are written when the step ends", path)
    return config


def _ranks(value: Any, name: str = "rank") -> set:
    ranks = [value] if isinstance(value, int) else value
    if isinstance(ranks, list) and all(isinstance(r, int) and not isinstance(r, bool) for r in ranks):
        return set(ranks)
    logger.warning("%s is %r; allowed: an integer or a list of integers; all ranks are monitored", name, value)
    return set()


def _is_on(name: str, given: dict) -> bool:
    switch = _SWITCHES.get(name, "")
    return bool(given.get("enabled", name == "module")) and bool(given.get(switch, True))


def _kind(name: str, given: dict, path: str) -> KindConfig:
    ops = given.get("ops", list(OPS))
    ops = [ops] if isinstance(ops, str) else list(ops) if isinstance(ops, (list, tuple)) else list(OPS)
    wrong = [op for op in ops if op not in OPS]
    if wrong:
        logger.warning("%s: ops of %s has %s; allowed: %s", path, name, ", ".join(map(str, wrong)), ", ".join(OPS))
    targets = given.get("targets", [])
    communication = given.get("cc_distribution", given) if name == "cc" else {}
    ranks = communication.get("module_ranks", []) if isinstance(communication, dict) else []
    return KindConfig(
        ops=list(dict.fromkeys(op for op in ops if op in OPS)) or list(OPS),
        targets=list(targets) if isinstance(targets, (list, tuple)) else [],
        options={key: value for key, value in given.items() if key not in ("ops", "targets", "enabled")},
        module_ranks=_ranks(ranks, "module_ranks"),
    )

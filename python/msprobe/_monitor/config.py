"""The configuration of TrainerMon: a JSON file with the keys of mindstudio-probe."""

import json
import os
from dataclasses import dataclass, field
from typing import Any, Optional

from .._capture.config.sizes import read_budget
from .._capture.log import logger
from .laws import LawConfig, read_laws

OPS = ("norm", "min", "max", "zeros", "nans", "id", "mean", "shape", "dtype")
FEATURE_HOOKS = ("linear_hook", "attention_hook", "moe_router_weight_hook", "moe_router_logit_hook")
HEALTH = ("weights", "activations", "logits", "routers", "attention")
ORDERS = ("s,b,h,d", "b,s,h,d")
CHANGE_RULE = "ChangePoint"
RULES = ("AnomalyTurbulence", "AnomalyNan", CHANGE_RULE)
FORMATS = ("csv", "tensorboard", "api")
ENDLESS = 100_000_000
_MOST_BYTES = 16 << 20
_MOST_DIGITS = 20
_MOST_STEPS_PER_FILE = 1_000_000
_MOST_DUMPED = 100
_FLAGS = (
    "print_struct",
    "input_distribution",
    "loss",
    "learning_rate",
    "ur_distribution",
    "xy_distribution",
    "mv_distribution",
    "wg_distribution",
    "param_distribution",
    "mg_direction",
    "all_xy",
    "forward_only",
    "backward_only",
    "recording_l2_features",
    "stack_info",
    "squash_name",
    "dynamic_on",
)
_COMMUNICATION = {"enable": bool, "cc_codeline": list, "cc_pre_hook": bool, "cc_log_only": bool}


@dataclass
class AlertActions:
    """What is done when a change is reported."""

    dump_steps: int = 0  # of PrecisionDebugger
    dump_config: str = ""
    command: list = field(default_factory=list)  # gets the event as JSON on its standard input
    ranks: str = ""  # how all ranks learn of an alarm of one: file or group; empty: they do not


@dataclass
class MonitorConfig:
    """One member for each key; docs/en/monitor/config.md explains them."""

    targets: dict = field(default_factory=dict)
    l2_targets: dict = field(default_factory=dict)
    module_ranks: list = field(default_factory=list)
    ops: list = field(default_factory=lambda: ["norm", "shape", "dtype"])
    eps: float = 1e-8
    ndigits: int = 6
    format: str = "csv"
    step_count_per_record: int = 1
    start_step: int = 0
    collect_times: int = ENDLESS
    step_interval: int = 1
    print_struct: bool = False
    input_distribution: bool = False
    loss: bool = False
    learning_rate: bool = False
    ur_distribution: bool = False
    xy_distribution: bool = False
    mv_distribution: bool = False
    wg_distribution: bool = False
    param_distribution: bool = False
    mg_direction: bool = False
    all_xy: bool = False
    forward_only: bool = False
    backward_only: bool = False
    monitor_mbs_grad: bool = False
    recording_l2_features: bool = False
    sa_order: str = "s,b,h,d"
    cc_distribution: dict = field(default_factory=dict)
    rules: list = field(default_factory=list)  # (name, threshold or None)
    alert_dump: bool = False
    false_alarms: Optional[float] = None  # of the rule ChangePoint; None: it is off
    actions: AlertActions = field(default_factory=AlertActions)
    stack_info: bool = False
    squash_name: bool = False
    dynamic_on: bool = False
    append_output: list = field(default_factory=list)
    health: list = field(default_factory=list)  # of HEALTH
    health_every: int = 10  # monitored steps
    laws: LawConfig = field(default_factory=LawConfig)
    budget: dict = field(default_factory=dict)  # disk: bytes, slowdown: factor, where they are given

    @property
    def all_targets(self) -> bool:
        """Whether no module was named."""
        return set(self.targets) == {""}

    def is_monitored(self, step: int) -> bool:
        """Tells whether values of this step are written."""
        return step >= self.start_step and (step - self.start_step) % self.step_interval == 0


def load_config(path: str) -> MonitorConfig:
    """Reads and checks a configuration.

    Args:
        path: A JSON file.

    Returns:
        The configuration.

    Raises:
        ValueError: It cannot be read, or a value is out of range.
        TypeError: A value has the wrong type.
    """
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise ValueError(f"{path} is larger than {_MOST_BYTES >> 20} MB: give the configuration of a monitor")
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
    except OSError as error:
        raise ValueError(f"the configuration of the monitor cannot be read: {error}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno} is not JSON: {error.msg}") from None
    if not isinstance(given, dict):
        raise TypeError(f"{path} holds no JSON object: it begins with {{ and ends with }}")
    return check_config(given, path)


def check_config(given: dict, place: str) -> MonitorConfig:
    """Checks the keys of a configuration.

    Args:
        given: The JSON object.
        place: What messages call it.

    Returns:
        The configuration.

    Raises:
        ValueError: A value is out of range.
        TypeError: A value has the wrong type.
    """
    config = MonitorConfig()
    for name in _FLAGS:
        if name in given:
            setattr(config, name, _typed(given, name, bool, place))
    config.ops = _ops(given, place)
    _numbers(config, given, place)
    _names(config, given, place)
    config.format = str(given.get("format", "csv"))
    if config.format not in FORMATS:
        logger.warning("%s: format %s is not one of %s: csv is written", place, config.format, ", ".join(FORMATS))
        config.format = "csv"
    if "budget" in given:
        config.budget = read_budget(
            given["budget"], lambda key, value, allowed: ValueError(f"{key} is {value!r}; allowed: {allowed} ({place})")
        )
    if "health" in given:
        _health(config, given["health"], place)
    if "laws" in given:
        config.laws = read_laws(given["laws"], place)
    _alert(config, given, place)
    _communication(config, given, place)
    if "mg_distribution" in given:  # the name that earlier documents gave it
        config.mg_direction |= _typed(given, "mg_distribution", bool, place)
    mbs = given.get("monitor_mbs_grad", False)
    if isinstance(mbs, bool):
        config.monitor_mbs_grad = mbs
    else:
        logger.warning("%s: monitor_mbs_grad is %r and not true or false: it is taken as false", place, mbs)
    if not config.targets:
        config.all_xy |= config.xy_distribution
        config.targets = {"": {}}
    return config


def _typed(given: dict, name: str, kind: Any, place: str) -> Any:
    value = given[name]
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        words = {
            bool: "true or false",
            list: "a list",
            dict: "an object",
            str: "a string",
            float: "a number with a point",
        }
        raise TypeError(f"{name} is {value!r}; allowed: {words[kind]} ({place})")
    return value


def _ops(given: dict, place: str) -> list:
    ops = []
    for op in _typed(given, "ops", list, place) if "ops" in given else []:
        if op in OPS:
            ops.append(op)
        else:
            logger.warning("%s: ops has %r; allowed: %s", place, op, ", ".join(OPS))
    ops = list(dict.fromkeys(ops)) or ["norm"]
    return ops + [op for op in ("shape", "dtype") if op not in ops]


def _numbers(config: MonitorConfig, given: dict, place: str) -> None:
    if "eps" in given:
        config.eps = _typed(given, "eps", float, place)
    digits = given.get("ndigits", 6)
    if digits:
        if isinstance(digits, bool) or not isinstance(digits, int) or not 0 < digits <= _MOST_DIGITS:
            raise ValueError(f"ndigits is {digits!r}; allowed: an integer from 1 to {_MOST_DIGITS} ({place})")
    config.ndigits = digits or 0
    count = given.get("step_count_per_record", 1)
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"step_count_per_record is {count!r}; allowed: an integer ({place})")
    if not 1 <= count <= _MOST_STEPS_PER_FILE:
        raise ValueError(f"step_count_per_record is {count}; allowed: 1 to {_MOST_STEPS_PER_FILE} ({place})")
    config.step_count_per_record = count
    config.start_step = whole_number(given.get("start_step"), "start_step", 0, 0)
    config.collect_times = whole_number(given.get("collect_times"), "collect_times", 0, ENDLESS)
    config.step_interval = whole_number(given.get("step_interval"), "step_interval", 1, 1)


def whole_number(value: Any, name: str, least: int, instead: int) -> int:
    """Checks an integer; a wrong one gives a warning and the default.

    Args:
        value: What was given; None for nothing.
        name: Of the key or argument.
        least: The lowest that is allowed.
        instead: The default.

    Returns:
        The value, or the default.
    """
    if value is None:
        return instead
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        logger.warning("%s is %r; allowed: an integer from %d; %d is taken", name, value, least, instead)
        return instead
    return value


def _names(config: MonitorConfig, given: dict, place: str) -> None:
    if "targets" in given:
        config.targets = dict(_typed(given, "targets", dict, place))
        for name, value in config.targets.items():
            if not isinstance(value, dict):
                raise TypeError(f"targets: {name} is {value!r}; allowed: an object such as {{}} ({place})")
    if "l2_targets" in given:
        config.l2_targets = _typed(given, "l2_targets", dict, place)
        for hook, names in config.l2_targets.items():
            if hook not in FEATURE_HOOKS:
                raise TypeError(f"l2_targets has {hook}; allowed: {', '.join(FEATURE_HOOKS)} ({place})")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"l2_targets: {hook} is {names!r}; allowed: a list of names of modules ({place})")
    if "module_ranks" in given:
        config.module_ranks = _typed(given, "module_ranks", list, place)
        if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in config.module_ranks):
            raise TypeError(f"module_ranks is {config.module_ranks!r}; allowed: a list of integers ({place})")
    if "append_output" in given:
        config.append_output = _typed(given, "append_output", list, place)
        if len(config.append_output) not in (0, 2):
            raise ValueError(
                f"append_output has {len(config.append_output)} entries; allowed: none or two times ({place})"
            )
    if "sa_order" in given:
        config.sa_order = str(given["sa_order"]).replace(" ", "")
        if config.sa_order not in ORDERS:
            raise TypeError(f"sa_order is {given['sa_order']!r}; allowed: {' or '.join(ORDERS)} ({place})")


def _health(config: MonitorConfig, given: Any, place: str) -> None:
    if isinstance(given, bool):
        config.health = list(HEALTH) if given else []
        return
    if not isinstance(given, dict):
        raise TypeError(f"health is {given!r}; allowed: true, false or an object ({place})")
    config.health = list(HEALTH)
    for key in given:
        if key == "every":
            config.health_every = _typed(given, key, int, place)
            if config.health_every < 1:
                raise ValueError(f"health: every is {config.health_every}; allowed: an integer from 1 ({place})")
        elif key not in HEALTH:
            raise TypeError(f"health has {key}; allowed: every, {', '.join(HEALTH)} ({place})")
        elif not _typed(given, key, bool, place):
            config.health.remove(key)


def _alert(config: MonitorConfig, given: dict, place: str) -> None:
    alert = _typed(given, "alert", dict, place) if "alert" in given else {}
    config.alert_dump = _typed(alert, "dump", bool, place) if "dump" in alert else False
    for rule in alert.get("rules") or []:
        name = rule.get("rule_name") if isinstance(rule, dict) else rule
        if name not in RULES:
            raise TypeError(f"alert: rule_name is {name!r}; allowed: {' or '.join(RULES)} ({place})")
        if name == CHANGE_RULE:
            config.false_alarms = _false_alarms(rule, place)
            continue
        threshold: Optional[float] = (rule.get("args") or {}).get("threshold")
        if threshold is not None and (
            isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or threshold < 0
        ):
            raise TypeError(f"alert: threshold is {threshold!r}; allowed: a number from 0 ({place})")
        if threshold is None and name == "AnomalyTurbulence":
            logger.warning('%s: AnomalyTurbulence needs "args": {"threshold": 0.5}: this rule is left out', place)
            continue
        config.rules.append((name, threshold))
    _actions(config, alert, place)


def _false_alarms(rule: Any, place: str) -> float:
    value = (rule.get("args") or {}).get("false_alarms", 0.02) if isinstance(rule, dict) else 0.02
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 10:
        raise TypeError(f"alert: false_alarms is {value!r}; allowed: a number above 0, up to 10 ({place})")
    return float(value)


def _actions(config: MonitorConfig, alert: dict, place: str) -> None:
    given = _typed(alert, "actions", dict, place) if "actions" in alert else {}
    for key in given:
        if key not in ("dump_steps", "dump_config", "command", "ranks"):
            raise TypeError(f"alert: actions has {key}; allowed: dump_steps, dump_config, command, ranks ({place})")
    actions = config.actions
    if "dump_steps" in given:
        actions.dump_steps = _typed(given, "dump_steps", int, place)
        if not 0 <= actions.dump_steps <= _MOST_DUMPED:
            raise ValueError(f"alert: dump_steps is {actions.dump_steps}; allowed: from 0 to {_MOST_DUMPED} ({place})")
    if "dump_config" in given:
        actions.dump_config = _typed(given, "dump_config", str, place)
    if "command" in given:
        actions.command = _typed(given, "command", list, place)
        if not actions.command or not all(isinstance(part, str) for part in actions.command):
            raise TypeError(
                f"alert: command is {actions.command!r}; allowed: a program and its arguments, a list of texts ({place})"
            )
    if "ranks" in given:
        actions.ranks = _typed(given, "ranks", str, place)
        if actions.ranks not in ("file", "group"):
            raise ValueError(f"alert: ranks is {actions.ranks!r}; allowed: file or group ({place})")
        if actions.ranks == "group" and config.module_ranks:
            raise ValueError(
                f"alert: ranks is group with module_ranks; allowed: file, or all ranks monitored ({place})"
            )
    if given and config.false_alarms is None:
        logger.warning("%s: alert has actions, but no rule %s: they are not taken", place, CHANGE_RULE)


def _communication(config: MonitorConfig, given: dict, place: str) -> None:
    if "cc_distribution" not in given:
        return
    config.cc_distribution = _typed(given, "cc_distribution", dict, place)
    for key in config.cc_distribution:
        if key not in _COMMUNICATION:
            raise TypeError(f"cc_distribution has {key}; allowed: {', '.join(_COMMUNICATION)} ({place})")
        _typed(config.cc_distribution, key, _COMMUNICATION[key], place)

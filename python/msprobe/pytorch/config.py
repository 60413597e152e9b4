"""The configuration of a capture: config.json, the arguments that override it, and what is wrong with either."""

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Optional

from .config_file import ConfigFile, ConfigFileError, read_api_lists, read_json
from .config_keys import (
    CHECK_MODES,
    CUSTOM_APIS_FILE,
    DATA_MODES,
    FORWARD_OF_MODULE,
    KNOWN_SECTION_KEYS,
    LEVELS,
    LOAD_KEYS,
    MAX_INDEX,
    MAX_LAST_OPS,
    MAX_SEED,
    PRECISIONS,
    RANGE,
    RISK_LEVELS,
    SCOPE_NAMES,
    SUMMARY_MODES,
    TASKS,
    TOP_KEYS,
)
from .sizes import read_budget

DEFAULT_CONFIG_PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "config.json")


class MsprobeException(Exception):
    """The one exception a wrong configuration or a wrong call raises."""

    INVALID_PARAM_ERROR = 0
    INTERFACE_USAGE_ERROR = 3

    _PREFIXES = {
        INVALID_PARAM_ERROR: "[msprobe] 无效参数：",
        INTERFACE_USAGE_ERROR: "[msprobe] Invalid interface usage: ",
    }

    def __init__(self, code: int, error_info: str = ""):
        super().__init__(code, error_info)
        self.code = code
        self.error_info = self._PREFIXES.get(code, "[msprobe] ") + error_info

    def __str__(self) -> str:
        return self.error_info


class Slice(NamedTuple):
    """Which part of a dimension is recorded; `size` set: only in tensors whose dimension has this length."""

    dim: int
    size: Optional[int]
    begin: int
    end: Optional[int]


class Load(NamedTuple):
    """Dumped inputs that replace those of modules; empty `step` and `rank` mean all."""

    path: str
    modules: tuple
    step: tuple
    rank: tuple
    dump_after_load: bool


@dataclass
class Config:
    """A valid configuration. Empty `rank` and `step` mean all; `data_mode` is ["all"] or names sides and directions."""

    task: str = "statistics"
    level: str = "L1"
    dump_path: str = ""
    rank: list = field(default_factory=list)
    step: list = field(default_factory=list)
    extra_info: bool = True
    risk_level: str = "FOCUS"
    # of the section of the task
    scope: list = field(default_factory=list)
    list_: list = field(default_factory=list)
    data_mode: list = field(default_factory=lambda: ["all"])
    summary_mode: str = "statistics"
    tensor_list: list = field(default_factory=list)
    slice_: list = field(default_factory=list)
    request_id: Optional[str] = None
    # of tasks that decide after an op ran whether it is kept
    overflow_nums: int = 1
    check_mode: str = "all"
    bench_path: str = ""
    diff_nums: int = 1
    last_ops: int = 32
    # which functions are recorded, beside the built-in rules
    custom_apis: dict = field(default_factory=dict)
    exclude_apis: list = field(default_factory=list)
    custom_op_namespaces: list = field(default_factory=lambda: ["_C_ascend"])
    # reproducibility
    seed: Optional[int] = None
    is_deterministic: bool = False
    # other ways to run
    dump_enable: Optional[bool] = None
    async_dump: bool = False
    precision: str = "low"
    enable_dataloader: bool = False
    # after the last step: True raises an exception, False lets the run go on, None means True with enable_dataloader
    exit_after_range: Optional[bool] = None
    load: Optional[Load] = None
    budget: dict = field(default_factory=dict)  # {"disk": bytes, "slowdown": factor}, each where it is given
    # the section of the task as it stands in the file, for what the fields above do not hold
    section: dict = field(default_factory=dict)
    config_path: str = ""
    places: dict = field(default_factory=dict)  # key -> file and line, or argument
    warnings: list = field(default_factory=list)

    def collects(self, what: str) -> bool:
        """Whether a side ("input", "output") or a direction ("forward", "backward") is recorded."""
        return self.data_mode == ["all"] or what in self.data_mode

    def place(self, key: str) -> str:
        """Where the value of a key comes from, for messages."""
        return self.places.get(key, self.config_path)

    @property
    def exits_after_range(self) -> bool:
        return self.enable_dataloader if self.exit_after_range is None else self.exit_after_range

    @property
    def only_loads(self) -> bool:
        """Inputs are replaced and nothing is recorded."""
        return self.load is not None and not self.load.dump_after_load


def load_config(config_path: Optional[str] = None, **overrides: Any) -> Config:
    """Reads `config_path` (the shipped default when None). Overrides win over the file, unless None or empty text."""
    settable = {f.name for f in fields(Config)} - {"section", "config_path", "places", "warnings"}
    unknown = sorted(set(overrides) - settable)
    if unknown:
        raise TypeError(f"load_config() got an unexpected keyword argument '{unknown[0]}'")
    given = {key: value for key, value in overrides.items() if value not in (None, "")}
    return _Loader(_read_file(config_path), given).config()


def parse_index_list(value: Any) -> list:
    """[0, "3-5"] -> [0, 3, 4, 5], sorted and without doubles; null is []. ValueError says what is wrong."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise ValueError('a list of numbers and ranges such as [0, "3-5"]')
    indices = set()
    for item in value:
        indices.update(_parse_index(item))
    return sorted(indices)


def _parse_index(item: Any) -> range:
    wanted = f'numbers from 0 to {MAX_INDEX} and ranges such as "3-5"'
    if isinstance(item, bool) or not isinstance(item, (int, str)):
        raise ValueError(wanted)
    if isinstance(item, str):
        match = RANGE.fullmatch(item) if len(item) <= 32 else None
        if not match:
            raise ValueError(wanted)
        begin, end = int(match[1]), int(match[2] or match[1])
    else:
        begin = end = item
    if begin < 0 or end > MAX_INDEX:
        raise ValueError(wanted)
    if begin > end:
        raise ValueError('a range "A-B" with A not above B')
    return range(begin, end + 1)


def _read_file(config_path: Optional[str]) -> ConfigFile:
    path = DEFAULT_CONFIG_PATH if config_path is None else config_path
    if not isinstance(path, (str, os.PathLike)):
        raise _invalid(f"config_path is {_show(path)}; allowed: the path of a JSON file")
    path = os.fspath(path)
    try:
        return read_json(path)
    except ConfigFileError as error:
        place = f"{path}, line {error.line}" if error.line else path
        raise _invalid(f"config_path: {place}: the file {error.message}") from error


def _invalid(text: str) -> MsprobeException:
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class _Loader:
    """Takes the values of one file and of the overrides, checks each, and says where a wrong one stands."""

    def __init__(self, file: ConfigFile, overrides: Mapping):
        self._file = file
        self._overrides = overrides
        self._warnings: list = []
        # null and empty text stand for "not given" at every key, as they always did.
        self._top = {key: value for key, value in file.data.items() if value not in (None, "")}
        self._task = ""
        self._section_name = ""
        self._section: dict = {}

    def config(self) -> Config:
        task = self._one_of("task", TASKS, "statistics")
        self._choose_section(task)
        config = Config(task=task, config_path=self._file.path, section=self._section)
        self._read_common(config)
        self._read_filters(config)
        self._read_decisions(config)
        self._read_lists_of_apis(config)
        self._warn_about_keys()
        self._check_together(config)
        config.warnings = self._warnings
        keys = {*self._file.data, *self._section, *self._overrides}
        config.places = {key: self._place(key) for key in keys}
        return config

    # ---- where values come from

    def _choose_section(self, task: str) -> None:
        # acc_check was called run_ut; a file may still use the other name.
        self._task = task
        other = {"acc_check": "run_ut", "run_ut": "acc_check"}.get(task, task)
        self._section_name = task if task in self._top else other
        section = self._top.get(self._section_name, {})
        if not isinstance(section, dict):
            raise self._wrong(self._section_name, section, "an object { ... }")
        self._section = {key: value for key, value in section.items() if value not in (None, "")}

    def _get(self, key: str, default: Any, in_section: bool = False) -> Any:
        name = {"list": "list_", "slice": "slice_"}.get(key, key)
        if name in self._overrides:
            return self._overrides[name]
        return (self._section if in_section else self._top).get(key, default)

    def _place(self, key: str) -> str:
        name = {"list": "list_", "slice": "slice_"}.get(key, key)
        if name in self._overrides:
            return f"argument {key}"
        parts = tuple(key.split("."))
        for path in (parts, (self._section_name, key), (key,), parts[:1]):
            if path in self._file.lines:
                return f"{self._file.path}, line {self._file.lines[path]}"
        return self._file.path

    def _wrong(self, key: str, value: Any, allowed: str) -> MsprobeException:
        return _invalid(f"{key} is {_show(value)}; allowed: {allowed} ({self._place(key)})")

    def _warn(self, key: str, text: str) -> None:
        self._warnings.append(f"{text} ({self._place(key)})")

    # ---- kinds of values

    def _one_of(self, key: str, allowed: tuple, default: str, in_section: bool = False) -> str:
        value = self._get(key, default, in_section)
        if not isinstance(value, str) or value not in allowed:
            raise self._wrong(key, value, ", ".join(allowed))
        return value

    def _bool(self, key: str, default: Optional[bool]) -> Optional[bool]:
        value = self._get(key, default)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def _strings(self, key: str, default: list, in_section: bool = False) -> list:
        value = self._get(key, default, in_section)
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, value, "a list of strings")
        return list(value)

    def _indices(self, key: str) -> list:
        return self._parsed_indices(key, self._get(key, []))

    def _parsed_indices(self, key: str, value: Any) -> list:
        try:
            return parse_index_list(value)
        except ValueError as error:
            raise self._wrong(key, value, str(error)) from error

    # ---- groups of keys

    def _read_common(self, config: Config) -> None:
        config.level = self._one_of("level", LEVELS, "L1")
        config.load = self._load()
        config.dump_path = self._dump_path(config)
        config.rank = self._indices("rank")
        config.step = self._indices("step")
        config.extra_info = self._bool("extra_info", True)
        config.async_dump = self._bool("async_dump", False)
        config.dump_enable = self._bool("dump_enable", None)
        config.enable_dataloader = self._bool("enable_dataloader", False)
        config.is_deterministic = self._bool("is_deterministic", False)
        config.precision = self._one_of("precision", PRECISIONS, "low")
        # Present but empty has always meant "no filter", absent the default filter.
        empty = self._file.data.get("risk_level", "FOCUS") in (None, "") and "risk_level" not in self._overrides
        config.risk_level = "ALL" if empty else self._one_of("risk_level", RISK_LEVELS, "FOCUS")
        config.custom_op_namespaces = self._strings("custom_op_namespaces", ["_C_ascend"])
        config.budget = read_budget(self._get("budget", {}), self._wrong)
        config.seed = self._get("seed", None)
        if config.seed is not None and (type(config.seed) is not int or not 0 <= config.seed <= MAX_SEED):
            raise self._wrong("seed", config.seed, f"an integer from 0 to {MAX_SEED}")
        config.exit_after_range = self._bool("exit_after_range", None)

    def _load(self) -> Optional[Load]:
        value = self._get("load", None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(
                "load", value, 'an object such as {"path": "dump", "modules": ["Module.fc.Linear.forward.0"]}'
            )
        path, modules = value.get("path"), value.get("modules")
        if not isinstance(path, str) or not os.path.isdir(path):
            raise self._wrong("load.path", path, "a directory of an earlier dump, the one that holds step0")
        names = modules if isinstance(modules, list) and modules else [None]
        if not all(isinstance(n, str) and FORWARD_OF_MODULE.fullmatch(n) for n in names) or len({*names}) < len(names):
            allowed = "a list of different names of module forwards, such as Module.fc.Linear.forward.0"
            raise self._wrong("load.modules", modules, allowed)
        after = value.get("dump_after_load", False)
        if not isinstance(after, bool):
            raise self._wrong("load.dump_after_load", after, "true or false")
        step, rank = (tuple(self._parsed_indices(f"load.{key}", value.get(key))) for key in ("step", "rank"))
        return Load(path, tuple(modules), step, rank, after)

    def _dump_path(self, config: Config) -> str:
        value = self._get("dump_path", "")
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value == "" and config.only_loads:
            return ""
        if not isinstance(value, str) or not value or "\0" in value:
            raise self._wrong("dump_path", value, "the path of a directory, which is created if it is not there")
        if len(value) > 4096 or any(len(part) > 255 for part in value.split("/")):
            raise self._wrong("dump_path", value, "at most 4096 characters, and 255 in each name")
        return value

    def _read_filters(self, config: Config) -> None:
        config.scope = self._scope(config.level)
        config.list_ = self._strings("list", [], in_section=True)
        config.data_mode = self._data_mode()
        config.summary_mode = self._one_of("summary_mode", SUMMARY_MODES, "statistics", in_section=True)
        config.tensor_list = self._strings("tensor_list", [], in_section=True)
        config.slice_ = self._slices()
        config.request_id = self._get("request_id", None, in_section=True)
        if config.request_id is not None and not isinstance(config.request_id, str):
            raise self._wrong("request_id", config.request_id, "a string")

    def _read_decisions(self, config: Config) -> None:
        config.overflow_nums = self._count("overflow_nums")
        config.diff_nums = self._count("diff_nums")
        config.check_mode = self._one_of("check_mode", CHECK_MODES, "all", in_section=True)
        config.last_ops = self._get("last_ops", 32, in_section=True)
        if type(config.last_ops) is not int or not 0 <= config.last_ops <= MAX_LAST_OPS:
            raise self._wrong("last_ops", config.last_ops, f"an integer from 0 to {MAX_LAST_OPS}")
        config.bench_path = self._get("bench_path", "", in_section=True)
        if not isinstance(config.bench_path, str):
            raise self._wrong("bench_path", config.bench_path, "the path of an earlier dump made with summary_mode md5")

    def _count(self, key: str) -> int:
        value = self._get(key, 1, in_section=True)
        if type(value) is not int or (value != -1 and value <= 0):
            raise self._wrong(key, value, "an integer from 1, or -1 for no limit")
        return value

    def _scope(self, level: str) -> list:
        names = self._strings("scope", [], in_section=True)
        if names and len(names) != 2:
            raise self._wrong("scope", names, "[] or exactly two full names, the first and the last to record")
        pattern = SCOPE_NAMES.get(level)
        for name in names if pattern else []:
            if not re.fullmatch(pattern, name):
                example = "Module.layer.Linear.forward.0" if level == "L0" else "Functional.linear.0.forward"
                raise self._wrong("scope", names, f"full names as level {level} records them, such as {example}")
        return names

    def _data_mode(self) -> list:
        modes = self._strings("data_mode", ["all"], in_section=True) or ["all"]
        alone = "all" in modes and len(modes) > 1
        if alone or any(mode not in DATA_MODES for mode in modes):
            raise self._wrong("data_mode", modes, '["all"], or some of ' + ", ".join(DATA_MODES[1:]))
        if modes == ["all"]:
            return modes
        chosen = set(modes)
        for pair in ({"input", "output"}, {"forward", "backward"}):
            if not chosen & pair:
                chosen |= pair
        return [mode for mode in DATA_MODES if mode in chosen]

    def _slices(self) -> list:
        value = self._get("slice", [], in_section=True)
        allowed = 'a list of objects with integers, such as [{"dim": 0, "begin": 0, "end": 16}]'
        if not isinstance(value, (list, tuple)):
            raise self._wrong("slice", value, allowed)
        by_dim = {}
        for item in value:
            keys = {"dim", "size", "begin", "end"}
            if (
                not isinstance(item, dict)
                or set(item) - keys
                or any(type(number) is not int for number in item.values())
            ):
                raise self._wrong("slice", value, allowed)
            one = Slice(item.get("dim", 0), item.get("size"), item.get("begin", 0), item.get("end"))
            if one.dim < 0:
                raise self._wrong("slice", value, '"dim" not below 0')
            by_dim[one.dim] = one
        return list(by_dim.values())

    def _read_lists_of_apis(self, config: Config) -> None:
        config.exclude_apis = self._strings("exclude_apis", [])
        value = self._get("custom_apis", None)
        if value is None:
            beside = os.path.join(os.path.dirname(self._file.path), CUSTOM_APIS_FILE)
            value = CUSTOM_APIS_FILE if os.path.isfile(beside) else {}
        if isinstance(value, str):
            value = self._api_lists_of_file(value)
        allowed = 'an object {"module.path": ["function", ...]}, or the path of a JSON or YAML file that holds one'
        if not isinstance(value, dict):
            raise self._wrong("custom_apis", value, allowed)
        for path, names in value.items():
            names = [names] if isinstance(names, str) else names
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise self._wrong("custom_apis", value, allowed)
            config.custom_apis[path] = names

    def _api_lists_of_file(self, name: str) -> dict:
        path = os.path.join(os.path.dirname(self._file.path), name)
        try:
            return read_api_lists(path)
        except ConfigFileError as error:
            place = f"{path}, line {error.line}" if error.line else path
            raise _invalid(f"custom_apis: {place}: the file {error.message} ({self._place('custom_apis')})") from error

    # ---- the configuration as a whole

    def _warn_about_keys(self) -> None:
        sections = frozenset(KNOWN_SECTION_KEYS)
        for key, value in self._file.data.items():
            self._warn_if_unknown((key,), TOP_KEYS | sections)
            if key in sections and isinstance(value, dict):
                for inner in value:
                    self._warn_if_unknown((key, inner), KNOWN_SECTION_KEYS[key])
            if key == "load" and isinstance(value, dict):
                for inner in value:
                    self._warn_if_unknown((key, inner), LOAD_KEYS)
        for path in self._file.duplicates:
            place = f"{self._file.path}, line {self._file.lines[path]}"
            self._warnings.append(f'key "{".".join(map(str, path))}" occurs twice, the last one counts ({place})')

    def _warn_if_unknown(self, path: tuple, known: frozenset) -> None:
        key = path[-1]
        if key in known:
            return
        near = difflib.get_close_matches(key, sorted(known), n=1)
        place = f"{self._file.path}, line {self._file.lines[path]}"
        hint = f'; did you mean "{near[0]}"?' if near else ""
        if len(path) == 1 and key in KNOWN_SECTION_KEYS[self._task]:
            hint = f'; it belongs into the object "{self._task}"'
        self._warnings.append(f'key "{".".join(path)}" is unknown and has no effect{hint} ({place})')

    def _check_together(self, config: Config) -> None:
        if config.task == "structure" and config.level not in ("L0", "mix"):
            self._warn("level", f"level {config.level} records no structure, task structure uses level mix")
            config.level = "mix"
        sliceable = config.task in ("statistics", "tensor") and config.level in ("L0", "L1", "mix")
        for key, name, empty in (("slice", "slice_", []), ("request_id", "request_id", None)):
            if getattr(config, name) and not sliceable:
                self._warn(key, f"{key} has no effect with task {config.task} at level {config.level}")
                setattr(config, name, empty)
        if config.tensor_list and config.level == "debug":
            self._warn(
                "tensor_list", "tensor_list has no effect at level debug; task tensor saves what save() is given"
            )
            config.tensor_list = []
        if not config.async_dump:
            return
        if config.summary_mode == "md5":
            raise self._wrong("summary_mode", "md5", "statistics, because async_dump is true")
        if config.task == "tensor" and config.level == "debug":
            config.list_ = []
        elif config.task == "tensor" and not config.list_:
            raise self._wrong("list", [], "a list that is not empty, because async_dump is true in task tensor")

"""Reads config.json and the arguments that override it, and says what is wrong with either."""

import copy
import difflib
import json
import os
import pathlib
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Optional, Union

from ..errors import MsprobeException
from ..words import say, wrong
from .file import ConfigFile, ConfigFileError, read_api_lists, read_json
from .keys import (
    BY_NAME,
    COMMON,
    CUSTOM_APIS_FILE,
    FORWARD_OF_MODULE,
    KNOWN_SECTION_KEYS,
    LOAD_KEYS,
    MAX_INDEX,
    RANGE,
    READ_KEYS,
    SCOPE_NAMES,
    TOP_KEYS,
    Key,
)
from .sizes import read_budget
from .values import Config, Load, Slice

DEFAULT_CONFIG_PATH = str(pathlib.Path(os.path.abspath(__file__)).parents[2] / "config.json")


def load_config(config_path: Union[str, "os.PathLike[str]", None] = None, **overrides: Any) -> Config:
    """Reads and validates a configuration.

    Args:
        config_path: Path of the JSON file; None for the default one of the package.
        **overrides: Fields of Config that take precedence over the file, unless None or "".

    Returns:
        The configuration.

    Raises:
        MsprobeException: The file or a value is invalid. The message gives the key, its value, what is allowed, and the line.
        TypeError: An override is not a field of Config.
    """
    settable = {f.name for f in fields(Config)} - {"section", "config_path", "places", "warnings"}
    unknown = sorted(set(overrides) - settable)
    if unknown:
        raise TypeError(f"load_config() got an unexpected keyword argument '{unknown[0]}'")
    given = {key: value for key, value in overrides.items() if value not in (None, "")}
    return _Loader(_read_file(config_path), given).config()


def with_value(config: Config, name: str, value: Any, place: str) -> Config:
    """Changes one key of a configuration, with the same validation as in a file.

    Args:
        config: The configuration to start from; it is not modified.
        name: Name of the key.
        value: The new value.
        place: Where the value comes from, for messages.

    Returns:
        The new configuration; its `warnings` are those of this value.

    Raises:
        MsprobeException: The value is invalid.
    """
    key = BY_NAME[name]
    loader = _Loader(ConfigFile(place, {}, {}, []), {key.field: value})
    changed = replace(config, places={**config.places, name: place})
    return loader.with_value(key, changed)


def parse_index_list(value: Any) -> list[int]:
    """Parses a list of numbers and ranges.

    Args:
        value: For example [0, "3-5"]; None for an empty list.

    Returns:
        The numbers, sorted and without duplicates: [0, 3, 4, 5].

    Raises:
        ValueError: The list is invalid; the message says what is allowed.
    """
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise ValueError('a list of numbers and ranges such as [0, "3-5"]')
    indices: set[int] = set()
    for item in value:
        indices.update(_parse_index(item))
    return sorted(indices)


def _parse_index(item: Any) -> range:
    wanted = say('numbers from 0 to %(most)s and ranges such as "3-5"', most=MAX_INDEX)
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


def _read_file(config_path: Union[str, "os.PathLike[str]", None]) -> ConfigFile:
    path = DEFAULT_CONFIG_PATH if config_path is None else config_path
    if not isinstance(path, (str, os.PathLike)):
        allowed = say("the path of a JSON file")
        raise _invalid(
            say("%(name)s is %(value)s; allowed: %(allowed)s", name="config_path", value=_show(path), allowed=allowed)
        )
    path = os.fspath(path)
    try:
        return read_json(path)
    except ConfigFileError as error:
        text = say("config_path: %(place)s: the file %(why)s", place=_at(path, error.line), why=error.message)
        raise _invalid(text) from error


def _at(path: str, line: int) -> str:
    return say("%(path)s, line %(line)s", path=path, line=line) if line else path


def _invalid(text: str) -> MsprobeException:
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# Read with their task only; what other tasks have is read whatever the task is, as it always was.
_OF_GRAD_PROBE = frozenset(key.name for key in READ_KEYS if key.sections == ("grad_probe",))


class _Loader:
    """Takes the values of one file and of the overrides, checks each, and says where a wrong one stands."""

    def __init__(self, file: ConfigFile, overrides: Mapping) -> None:
        self._file = file
        self._overrides = overrides
        self._warnings: list = []
        # null and empty text stand for "not given" at every key, as they always did.
        self._top = {key: value for key, value in file.data.items() if value not in (None, "")}
        self._task = ""
        self._section_name = ""
        self._section: dict = {}

    def config(self) -> Config:
        config = Config(config_path=self._file.path)
        for key in READ_KEYS:
            if key.name not in _OF_GRAD_PROBE or config.task == "grad_probe":
                setattr(config, key.field, getattr(self, f"_read_{key.kind}")(key, config))
            if key.name == "task":
                self._choose_section(config.task)
                config.section = self._section
        self._warn_about_keys()
        self._check_together(config)
        config.warnings = self._warnings
        keys = {*self._file.data, *self._section, *self._overrides}
        config.places = {key: self._place(key) for key in keys}
        return config

    def with_value(self, key: Key, config: Config) -> Config:
        setattr(config, key.field, getattr(self, f"_read_{key.kind}")(key, config))
        self._check_together(config)
        config.warnings = self._warnings
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

    def _get(self, key: Key) -> Any:
        if key.field in self._overrides:
            return self._overrides[key.field]
        return (self._top if key.sections == COMMON else self._section).get(key.name, copy.copy(key.default))

    def _place(self, key: str) -> str:
        if key in BY_NAME and BY_NAME[key].field in self._overrides:
            return say("argument %(name)s", name=key) if self._file.data else self._file.path
        parts = tuple(key.split("."))
        for path in (parts, (self._section_name, key), (key,), parts[:1]):
            if path in self._file.lines:
                return _at(self._file.path, self._file.lines[path])
        return self._file.path

    def _wrong(self, key: str, value: Any, allowed: str) -> MsprobeException:
        meant = self._misspelt(key)
        text = wrong(key, _show(value), allowed, self._place(key))
        return _invalid(f"{meant}; {text}" if meant else text)

    def _misspelt(self, key: str) -> str:
        """Says which unknown key of the file was likely meant to be this one, where the file does not have it."""
        if key in self._file.data or key in self._section:
            return ""
        unknown = [k for k in self._file.data if k not in TOP_KEYS and k not in KNOWN_SECTION_KEYS]
        near = difflib.get_close_matches(key, unknown, n=1)
        if not near:
            return ""
        place = _at(self._file.path, self._file.lines[(near[0],)])
        return say(
            'key "%(found)s" is unknown: did you mean "%(key)s"? (%(place)s)', found=near[0], key=key, place=place
        )

    def _warn(self, key: str, text: str) -> None:
        self._warnings.append(f"{text} ({self._place(key)})")

    # ---- kinds of values: each reader takes the key, and the configuration as far as it has been read

    def _read_choice(self, key: Key, config: Config) -> str:
        value = self._get(key)
        if not isinstance(value, str) or value not in key.allowed:
            near = difflib.get_close_matches(value, key.allowed, n=1) if isinstance(value, str) else ()
            names = ", ".join(key.allowed)
            if near:
                names = say('%(allowed)s; did you mean "%(near)s"?', allowed=names, near=near[0])
            raise self._wrong(key.name, value, names)
        return value

    def _read_flag(self, key: Key, config: Config) -> Optional[bool]:
        value = self._get(key)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(key.name, value, "true or false")
        return value

    def _read_strings(self, key: Key, config: Config) -> list:
        value = self._get(key)
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key.name, value, "a list of strings")
        return list(value)

    def _read_text(self, key: Key, config: Config) -> Optional[str]:
        value = self._get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key.name, value, "a string")
        return value

    def _read_integer(self, key: Key, config: Config) -> Optional[int]:
        value = self._get(key)
        if value is not None and (type(value) is not int or not 0 <= value <= key.allowed):
            raise self._wrong(key.name, value, say("an integer from %(least)s to %(most)s", least=0, most=key.allowed))
        return value

    def _read_count(self, key: Key, config: Config) -> int:
        value = self._get(key)
        if type(value) is not int or (value != -1 and value <= 0):
            raise self._wrong(key.name, value, "an integer from 1, or -1 for no limit")
        return value

    def _read_indices(self, key: Key, config: Config) -> list:
        return self._parsed_indices(key.name, self._get(key))

    def _parsed_indices(self, key: str, value: Any) -> list:
        try:
            return parse_index_list(value)
        except ValueError as error:
            raise self._wrong(key, value, str(error)) from error

    # ---- single keys

    def _read_risk_level(self, key: Key, config: Config) -> str:
        # Present but empty has always meant "no filter", absent the default filter.
        empty = self._file.data.get(key.name, key.default) in (None, "") and key.name not in self._overrides
        return "ALL" if empty else self._read_choice(key, config)

    def _read_budget(self, key: Key, config: Config) -> dict:
        return read_budget(self._get(key), self._wrong)

    def _read_load(self, key: Key, config: Config) -> Optional[Load]:
        value = self._get(key)
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
        step, rank = (tuple(self._parsed_indices(f"load.{name}", value.get(name))) for name in ("step", "rank"))
        return Load(path, tuple(modules), step, rank, after)

    def _read_dump_path(self, key: Key, config: Config) -> str:
        value = self._get(key)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value == "" and config.only_loads:
            return ""
        if not isinstance(value, str) or not value or "\0" in value:
            raise self._wrong("dump_path", value, "the path of a directory, which is created if it is not there")
        if len(value) > 4096 or any(len(part) > 255 for part in value.split("/")):
            raise self._wrong("dump_path", value, "at most 4096 characters, and 255 in each name")
        return value

    def _read_bench_path(self, key: Key, config: Config) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self._wrong(key.name, value, "the path of an earlier dump made with summary_mode md5")
        return value

    def _read_scope(self, key: Key, config: Config) -> list:
        names = self._read_strings(key, config)
        if names and len(names) != 2:
            raise self._wrong("scope", names, "[] or exactly two full names, the first and the last to record")
        pattern = SCOPE_NAMES.get(config.level)
        for name in names if pattern else []:
            if not re.fullmatch(pattern, name):
                example = "Module.layer.Linear.forward.0" if config.level == "L0" else "Functional.linear.0.forward"
                text = "full names as level %(level)s records them, such as %(example)s"
                raise self._wrong("scope", names, say(text, level=config.level, example=example))
        return names

    def _read_data_mode(self, key: Key, config: Config) -> list:
        modes = self._read_strings(key, config) or ["all"]
        alone = "all" in modes and len(modes) > 1
        if alone or any(mode not in key.allowed for mode in modes):
            raise self._wrong(
                "data_mode", modes, say('["all"], or some of %(names)s', names=", ".join(key.allowed[1:]))
            )
        if modes == ["all"]:
            return modes
        chosen = set(modes)
        for pair in ({"input", "output"}, {"forward", "backward"}):
            if not chosen & pair:
                chosen |= pair
        return [mode for mode in key.allowed if mode in chosen]

    def _read_slice(self, key: Key, config: Config) -> list:
        value = self._get(key)
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

    def _read_bounds(self, key: Key, config: Config) -> list:
        value = self._get(key)
        numbers = isinstance(value, list) and bool(value) and all(type(bound) in (int, float) for bound in value)
        if not numbers or value != sorted(set(value)):
            raise self._wrong(key.name, value, "numbers, each above the one before it")
        return value

    def _read_api_lists(self, key: Key, config: Config) -> dict:
        lists: dict = {}
        value = self._top.get(key.name) if key.field not in self._overrides else self._overrides[key.field]
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
            lists[path] = names
        return lists

    def _api_lists_of_file(self, name: str) -> dict:
        path = os.path.join(os.path.dirname(self._file.path), name)
        try:
            return read_api_lists(path)
        except ConfigFileError as error:
            text = "custom_apis: %(file)s: the file %(why)s (%(place)s)"
            place = self._place("custom_apis")
            raise _invalid(say(text, file=_at(path, error.line), why=error.message, place=place)) from error

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
            place = _at(self._file.path, self._file.lines[path])
            self._warnings.append(f'key "{".".join(map(str, path))}" occurs twice, the last one counts ({place})')

    def _warn_if_unknown(self, path: tuple, known: frozenset) -> None:
        key = path[-1]
        if key in known:
            return
        near = difflib.get_close_matches(key, sorted(known), n=1)
        place = _at(self._file.path, self._file.lines[path])
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

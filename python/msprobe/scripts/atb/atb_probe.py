"""The probe of ATB: makes and checks its configuration, and prepares the environment of programs that shall dump.

    python atb_probe.py config -o config.json [--task statistics] [--dump_enable] [--ids 0,2_1] ...
    python atb_probe.py check config.json
    python atb_probe.py environment [--output=DIR] [--config=FILE]    for load_atb_probe.sh

The probe itself is a library that is preloaded into programs of ATB (CANN 8.3 and later); it comes with mindstudio-probe.
With the standard library only, for whatever interpreter the shell has.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TASKS = ("tensor", "statistics", "all")
FILTERS = {0: "keeps all", 1: "keeps equal tensors once", 2: "as 1, and leaves out kernels"}
RANGE = re.compile(r"(\d+),(\d+)")
IDS = re.compile(r"\d+(_\d+)*(,\d+(_\d+)*)*")
DEVICES = re.compile(r"\d+(,\d+)*")
NAMES = re.compile(r"[\w./-]+(,[\w./-]+)*")
# What the probe takes for what a file leaves out.
DEFAULTS = {
    "task": "tensor",
    "dump_enable": False,
    "exec_range": "0,0",
    "ids": "",
    "op_name": "",
    "save_child": False,
    "device": "",
    "filter_level": 1,
}
LIBRARY = "libatb_probe_abi{}.so"


class ProbeError(Exception):
    """What is wrong, where, and what to do."""


def _is_range(value: Any) -> bool:
    if value in ("all", "none"):
        return True
    match = RANGE.fullmatch(value) if isinstance(value, str) else None
    return match is not None and int(match[1]) <= int(match[2])


def _matches(pattern: re.Pattern) -> Any:
    return lambda value: isinstance(value, str) and (not value or pattern.fullmatch(value) is not None)


RULES = {
    "task": (lambda value: value in TASKS, ", ".join(TASKS)),
    "dump_enable": (lambda value: isinstance(value, bool), "true, false"),
    "exec_range": (_is_range, 'all, none, or the first and the last execution, as in "0,2"'),
    "ids": (_matches(IDS), 'ids of operations, as in "0,2_1", or ""'),
    "op_name": (_matches(NAMES), 'beginnings of names, as in "word,prefill", or ""'),
    "save_child": (lambda value: isinstance(value, bool), "true, false"),
    "device": (_matches(DEVICES), 'numbers of devices, as in "0,1", or ""'),
    "filter_level": (lambda value: type(value) is int and value in FILTERS, "0, 1, 2"),
}


def checked(config: Any, place: str) -> list[str]:
    """Checks a configuration of the probe.

    Args:
        config: The parsed file.
        place: Its path, for messages.

    Returns:
        What the user should know though it is no mistake.

    Raises:
        ProbeError: A key or a value that the probe does not take.
    """
    if not isinstance(config, dict):
        raise ProbeError(f"{place}: not an object: see {HERE / 'config_example.json'}")
    for key, value in config.items():
        if key not in RULES:
            raise ProbeError(f"{place}: unknown key {key}: the probe has {', '.join(RULES)}")
        good, allowed = RULES[key]
        if not good(value):
            raise ProbeError(f"{place}: {key} is {json.dumps(value)}; allowed: {allowed}")
    full = {**DEFAULTS, **config}
    notes = []
    if not full["dump_enable"]:
        notes.append("dump_enable is false: nothing is dumped until the file says true")
    elif full["exec_range"] == "none":
        notes.append("exec_range is none: the probe is awake, and nothing is dumped until the file says more")
    if config.get("filter_level", 1) != 1 and not full["save_child"]:
        notes.append("filter_level has an effect with save_child only")
    return notes


def read(path: Path) -> list[str]:
    """Reads and checks a file.

    Args:
        path: Of the configuration.

    Returns:
        As `checked`.

    Raises:
        ProbeError: It cannot be read, is no JSON, or has something that the probe does not take.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{path}: {error.strerror}: give the configuration of the probe") from None
    except UnicodeDecodeError:
        raise ProbeError(f"{path}: not UTF-8: give the configuration of the probe") from None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ProbeError(f"{path}: no JSON: {error}") from None
    return checked(config, str(path))


def library() -> Path:
    """Returns the library of the probe for the interface that ATB was built with.

    Raises:
        ProbeError: CANN or ATB is not set up in this shell, or the library is nowhere.
    """
    if not os.environ.get("ASCEND_HOME_PATH"):
        raise ProbeError("ASCEND_HOME_PATH is not set: source set_env.sh of CANN first")
    interface = re.search(r"cxx_abi_([01])/?$", os.environ.get("ATB_HOME_PATH", ""))
    if interface is None:
        raise ProbeError("ATB_HOME_PATH does not end in cxx_abi_0 or cxx_abi_1: source set_env.sh of ATB (NNAL) first")
    name = LIBRARY.format(interface[1])
    given = os.environ.get("MSPROBE_ATB_PROBE_DIR")
    places = [Path(given)] if given else [HERE.parent.parent / "lib"]
    if not given:
        try:
            found = metadata.distribution("mindstudio-probe").locate_file("msprobe/lib")
            places.append(Path(str(found)))
        except metadata.PackageNotFoundError:
            pass
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve()
    looked = ", ".join(map(str, places))
    raise ProbeError(
        f"{name} is not in {looked}: set MSPROBE_ATB_PROBE_DIR to the directory of mindstudio-probe's msprobe/lib"
    )


def environment(output: str | None, config: str | None) -> tuple[list[str], list[str]]:
    """Says what a shell has to export.

    Args:
        output: Directory of the dump; the current one unless given.
        config: The configuration; config.json beside this file unless given. It may be made later.

    Returns:
        Lines for `eval`, and notes.

    Raises:
        ProbeError: Something is missing; then there is nothing to export.
    """
    probe = library()
    directory = Path(output or ".").absolute()
    if directory.exists() and not directory.is_dir():
        raise ProbeError(f"{directory} is not a directory: give --output=DIR")
    path = Path(config).absolute() if config else HERE / "config.json"
    notes = read(path) if path.exists() else [f"{path} does not exist yet: nothing is dumped until it does"]
    before = [part for part in re.split(r"[: ]", os.environ.get("LD_PRELOAD", "")) if part and part != str(probe)]
    exported = {
        "LD_PRELOAD": ":".join([str(probe), *before]),
        "ATB_OUTPUT_DIR": str(directory),
        "ATB_DUMP_CONFIG": str(path),
    }
    return [f"export {name}={shlex.quote(value)}" for name, value in exported.items()], notes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="atb_probe.py", description="configuration and environment of the probe of ATB"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("config", help="write a configuration")
    make.add_argument("-o", "--output", default="config.json")
    make.add_argument("--task", default="tensor")
    make.add_argument("--dump_enable", action="store_true")
    make.add_argument("--exec_range", default="all")
    make.add_argument("--ids", default="")
    make.add_argument("--op_name", default="")
    make.add_argument("--save_child", action="store_true")
    make.add_argument("--device", default="")
    make.add_argument("--filter_level", type=int, default=1)
    check = commands.add_parser("check", help="check a configuration")
    check.add_argument("config")
    prepare = commands.add_parser("environment", help="what load_atb_probe.sh exports")
    prepare.add_argument("--output")
    prepare.add_argument("--config")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: Those of the process unless given.

    Returns:
        The exit code: 0, or 1 after one line that says what is wrong.
    """
    given = vars(_parser().parse_args(arguments))
    command = given.pop("command")
    lines: list[str] = []
    try:
        if command == "config":
            path = Path(given.pop("output"))
            notes = checked(given, "arguments")
            try:
                path.write_text(json.dumps(given, indent=4) + "\n", encoding="utf-8")
            except OSError as error:
                raise ProbeError(f"{path}: {error.strerror}: give another -o") from None
        elif command == "check":
            notes = read(Path(given["config"]))
        else:
            lines, notes = environment(given["output"], given["config"])
    except ProbeError as error:
        print(f"[msprobe] error: {error}", file=sys.stderr)
        return 1
    for note in notes:
        print(f"[msprobe] {note}", file=sys.stderr)
    print("\n".join(lines), end="\n" if lines else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Level L2: kernels, recorded by MindSpore itself. It reads what to record from a file of this module's making.

The file must be there before the first graph is compiled, and before mindspore.communication.init(); the runtime writes below
`{dump_path}/rank_{r}/`. What an Ascend takes at optimization level O2 has settings of its own.
"""

import json
import os
import re
from typing import Any

import mindspore

from .._capture.arguments import refuse
from .._capture.config import Config
from .._capture.files import write_file
from .._capture.log import logger
from .._capture.words import say, wrong

_VARIABLE = "MINDSPORE_DUMP_CONFIG"
_VARIABLE_OF_ACL = "MS_ACL_DUMP_CFG_PATH"
_TASKS = ("statistics", "tensor", "overflow_check", "exception_dump")
_EVERY_DEVICE = list(range(8))
_CATEGORIES = {"statistics": ["max", "min", "avg", "l2norm"], "md5": ["hash:md5"]}
_PATH_OF_RUNTIME = re.compile(r"[A-Za-z0-9_/-]*")  # it ends the training at its first graph for any other
_NAMES = {"overflow_check": "kernel_graph_overflow_check.json", "exception_dump": "kernel_graph_exception_dump.json"}


def prepare(config: Config) -> str:
    """Writes the settings for the runtime and tells it where they are.

    Returns:
        The path of the file.

    Raises:
        MsprobeException: The task cannot be recorded at this level, on this device, with this list, or at this path.
    """
    _check(config)
    check_path(config)
    whole = _jit_level() == "O2"
    name = _NAMES.get(config.task, "kernel_graph_dump.json" if whole else "kernel_kbyk_dump.json")
    path = os.path.join(os.path.abspath(config.dump_path), name)
    try:
        write_file(path, json.dumps(settings(config, whole), indent=4).encode())
    except OSError as error:
        text = "dump_path: %(path)s cannot be written (%(why)s): choose another one (%(place)s)"
        refuse(say(text, path=path, why=error.strerror, place=config.place("dump_path")))
    os.environ[_VARIABLE] = path
    os.environ.pop(_VARIABLE_OF_ACL, None)
    if whole:  # the runtime of the device reads the same file
        os.environ[_VARIABLE_OF_ACL] = path
    logger.info("level L2: MindSpore records kernels below %s, as %s says.", config.dump_path, path)
    return path


def settings(config: Config, whole_graphs: bool) -> dict:
    """Returns the content of the file; `whole_graphs`: for optimization level O2 on an Ascend."""
    common: dict[str, Any] = {
        "dump_mode": 1 if config.list_ else 0,
        "path": os.path.abspath(config.dump_path),
        "net_name": "Net",
        "iteration": _iterations(config.step),
        "saved_data": "tensor" if config.task == "tensor" else "statistic",
        "input_output": {("input",): 1, ("output",): 2}.get(tuple(m for m in config.data_mode if m in _SIDES), 0),
        "kernels": list(config.list_),
        "support_device": list(config.rank) or _EVERY_DEVICE,
    }
    if config.task == "statistics":
        common["statistic_category"] = _CATEGORIES[config.summary_mode]
    elif config.task == "overflow_check":
        common.update(op_debug_mode=3, dump_mode=0, kernels=[], input_output=0, saved_data="full")
        common["overflow_number"] = max(config.overflow_nums, 0)
    elif config.task == "exception_dump":
        common.update(op_debug_mode=4, dump_mode=0, kernels=[], input_output=0, saved_data="tensor", iteration="all")
    if whole_graphs:
        return {"common_dump_settings": {**common, "file_format": "npy"}}
    return {"common_dump_settings": common, "e2e_dump_settings": {"enable": not config.async_dump, "trans_flag": True}}


_SIDES = ("input", "output")


def check_path(config: Config) -> None:
    """Raises MsprobeException where the runtime of MindSpore would refuse the path that it is to write below."""
    path = os.path.abspath(config.dump_path)
    if not _PATH_OF_RUNTIME.fullmatch(path):
        text = (
            "dump_path: MindSpore writes only to paths of letters, digits, - and _, which %(path)s is not: choose another one "
            "(%(place)s)"
        )
        refuse(say(text, path=path, place=config.place("dump_path")))


def _check(config: Config) -> None:
    on_host = mindspore.get_context("device_target") == "CPU"
    tasks = ("tensor",) if on_host else _TASKS
    if config.task not in tasks:
        where = say("on a CPU") if on_host else say("at level L2")
        refuse(wrong("task", config.task, f"{', '.join(tasks)} {where}", config.place("task")))
    if config.summary_mode not in _CATEGORIES:
        refuse(wrong("summary_mode", config.summary_mode, ", ".join(_CATEGORIES), config.place("summary_mode")))
    for name in config.list_:
        pattern = re.fullmatch(r"name-regex\((.*)\)", name)
        try:
            re.compile(pattern[1] if pattern else "")
        except re.error as error:
            text = "list holds %(name)s: the regular expression is wrong, %(why)s (%(place)s)"
            refuse(say(text, name=name, why=error, place=config.place("list")))


def _iterations(steps: list) -> str:
    """Writes numbers as the runtime reads them, without spaces: [0, 1, 2, 5] as 0-2|5."""
    ranges: list = []
    for step in steps:
        if ranges and ranges[-1][1] == step - 1:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])
    return "|".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges) or "all"


def _jit_level() -> str:
    if mindspore.get_context("mode") != mindspore.GRAPH_MODE:
        return "O0"
    return mindspore.get_context("jit_level") or "O0"

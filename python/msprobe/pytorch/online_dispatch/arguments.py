"""What PtdbgDispatch is given, and what is wrong with it."""

import os
import re
from typing import Any

from ..._capture.arguments import is_index, refuse
from ..._capture.words import wrong

MODES = ("all", "list", "auto", "OFF")
_PLACE = "PtdbgDispatch"


def check(dump_mode: Any, api_list: Any, debug: Any, dump_path: Any, tag: Any, process_num: Any) -> None:
    """Rejects wrong arguments.

    Args:
        dump_mode: One of MODES.
        api_list: Names of operators, or None.
        debug: Whether each call is logged.
        dump_path: A directory.
        tag: Part of a name, or None.
        process_num: A whole number.

    Raises:
        MsprobeException: One is not what it must be; the text says which, and what is allowed.
    """
    names = api_list is None or (
        isinstance(api_list, (list, tuple)) and all(isinstance(name, str) for name in api_list)
    )
    for name, value, fits, allowed in (
        ("dump_mode", dump_mode, isinstance(dump_mode, str) and dump_mode in MODES, ", ".join(MODES)),
        ("api_list", api_list, names, 'a list of names of operators, such as ["matmul"]'),
        ("debug", debug, isinstance(debug, bool), "True, False"),
        ("dump_path", dump_path, _is_path(dump_path), "the path of a directory"),
        ("tag", tag, tag is None or _is_tag(tag), "letters, digits, _ and -"),
        ("process_num", process_num, is_index(process_num), "an integer from 0"),
    ):
        if not fits:
            refuse(wrong(name, repr(value), allowed, _PLACE))


def _is_path(value: Any) -> bool:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        return False
    return not os.path.exists(value) or os.path.isdir(value)


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,100}", value) is not None

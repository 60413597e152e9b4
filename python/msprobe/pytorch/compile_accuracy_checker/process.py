"""The process of `msprobe check_kernels`: compiles what a file of the user's makes, and judges each kernel.

Its arguments are FILE FUNCTION BACKWARD REPRO_DIR, its descriptor 0 is a socket to the command. It says one line, {"torch", "rows"}
with the fields of KernelRow, or {"error"}. What the user's file raises is its own traceback, on stderr.
"""

import os
import runpy
import sys
from typing import Any

import torch

from ..._capture.errors import MsprobeException
from ..._channel import channel
from .kernels import check_kernels


class NotMadeError(Exception):
    """The user's file does not give what it must; the text says why."""


def made_by(path: str, name: str) -> tuple[Any, list]:
    """Calls the user's function.

    Args:
        path: The file.
        name: The function in it.

    Returns:
        What is compiled, and its arguments.

    Raises:
        NotMadeError: There is no such function, or it returns something else.
    """
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    function = runpy.run_path(path, run_name="msprobe_check_kernels").get(name)
    if not callable(function):
        raise NotMadeError(f"{path} has no function {name}")
    made = function()
    function, *args = made if isinstance(made, (list, tuple)) else (made,)
    if not callable(function):
        kind = type(function).__name__
        raise NotMadeError(f"{name} in {path} returns a {kind}; allowed: a function or model, and its arguments")
    return function, args


def _judged(path: str, name: str, backward: bool, repro_dir: str) -> dict:
    try:
        function, args = made_by(path, name)
    except NotMadeError as error:
        return {"error": str(error)}
    try:
        rows = check_kernels(function, *args, backward=backward, repro_dir=repro_dir)
    except MsprobeException as error:
        return {"error": str(error)}
    return {"torch": torch.__version__, "rows": [row._asdict() for row in rows]}


def main() -> None:
    """Runs the process."""
    _, say = channel()
    path, name, backward, repro_dir = sys.argv[1:5]
    say(_judged(path, name, backward == "1", repro_dir))

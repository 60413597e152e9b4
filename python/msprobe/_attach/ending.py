"""How estimate and certify end a script that would go on: SystemExit with code 0, raised at a step boundary.

It unwinds the script as sys.exit() would: `finally` blocks and context managers run, `except Exception` does not see it. A
script that catches everything meets it again at its next step.
"""

import json
import os
from typing import Any

from .._compat import distributed_module


class Finished(SystemExit):
    """Ends the script: we have seen what we need."""

    def __init__(self) -> None:
        super().__init__(0)


def write_result(directory: str, name: str, result: dict) -> None:
    """Writes `{name}.json`; processes that would use the same name number their files."""
    for number in range(1000):
        path = os.path.join(directory, name + (f"_{number}" if number else "") + ".json")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(result, file)
        return


def rank_name(debugger: Any = None) -> str:
    """Returns the name of this process's directory in a dump."""
    distributed = distributed_module()
    if distributed.is_available() and distributed.is_initialized():
        return f"rank{distributed.get_rank()}"
    return "rank"

"""dump_error_info.log: what could not be recorded, one entry for each kind of trouble in a step."""

import os
from collections.abc import Mapping
from datetime import datetime

from .log import logger

NAME = "dump_error_info.log"


def write(directory: str, counts: Mapping[str, int], examples: Mapping[str, str]) -> None:
    """Appends one line per kind of problem; `examples` holds the first case of each."""
    if not counts:
        return
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    lines = [f"[{now}] {kind}: {count} times, first {examples.get(kind, '')}\n" for kind, count in counts.items()]
    try:
        os.makedirs(directory, mode=0o750, exist_ok=True)  # of a step of which nothing was kept
        descriptor = os.open(os.path.join(directory, NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
    except OSError as error:
        logger.warning("%s cannot be written: %s", os.path.join(directory, NAME), error)
